//! Whom a test talks to: addresses read from its memory, and whether there is somebody of its own behind them.
//! Between its own processes a test may use sockets as it likes; whoever else answers is an input that nobody
//! can compare.
//!
//! In: bytes of socket addresses, `/proc/PID/net`. Out: partners, and sockets that are the test's own.

use super::facts::{self, LISTENING, RECEIVING, Socket};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::OsStr;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Whom an address means.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Partner {
    /// Nobody: the address ends a connection, or is the kernel.
    Nobody,
    /// A socket in the file system.
    Path(PathBuf),
    /// A socket with a name of its own.
    Abstract(Vec<u8>),
    /// A port of this machine.
    Port(u16),
    /// Another machine.
    Machine(IpAddr),
    /// A kind of address that is not looked into.
    Family(u16),
}

/// The partner that a socket address names.
pub fn partner(address: &[u8]) -> Partner {
    let Some(family) = address.get(..2).map(|bytes| u16::from_ne_bytes([bytes[0], bytes[1]])) else {
        return Partner::Nobody;
    };
    let port = || address.get(2..4).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    match i32::from(family) {
        libc::AF_UNSPEC | libc::AF_NETLINK | libc::AF_ALG => Partner::Nobody,
        libc::AF_UNIX => unix(&address[2..]),
        libc::AF_INET => match address.get(4..8).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()) {
            Some(bytes) => internet(IpAddr::V4(Ipv4Addr::from(bytes)), port()),
            None => Partner::Nobody,
        },
        libc::AF_INET6 => match address.get(8..24).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok()) {
            Some(bytes) => internet(Ipv6Addr::from(bytes).to_canonical(), port()),
            None => Partner::Nobody,
        },
        _ => Partner::Family(family),
    }
}

fn unix(name: &[u8]) -> Partner {
    match name.first() {
        None => Partner::Nobody,
        Some(0) => Partner::Abstract(name[1..].to_owned()),
        Some(_) => {
            let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
            Partner::Path(PathBuf::from(OsStr::from_bytes(&name[..end])))
        }
    }
}

fn internet(address: IpAddr, port: u16) -> Partner {
    match address.is_loopback() || address.is_unspecified() {
        true => Partner::Port(port),
        false => Partner::Machine(address),
    }
}

/// The port of an internet address.
pub fn port(address: &[u8]) -> Option<u16> {
    let family = address.get(..2).map(|bytes| u16::from_ne_bytes([bytes[0], bytes[1]]))?;
    let is_internet = [libc::AF_INET, libc::AF_INET6].contains(&i32::from(family));
    is_internet.then(|| address.get(2..4).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]])))?
}

/// The sockets that a test has for itself.
#[derive(Debug, Default)]
pub struct Sockets {
    numbers: FxHashSet<u64>,
    names: FxHashSet<Vec<u8>>,
    /// The names that sockets were given, other than ports.
    bound: FxHashMap<u64, Partner>,
    /// Where processes of the test have waited for connections, and where they have connected to.
    waited: FxHashSet<Partner>,
    connected: FxHashSet<Partner>,
}

impl Sockets {
    /// A thread uses the socket behind its descriptor: so it is the test's own.
    pub fn owns(&mut self, thread: u32, descriptor: u64) {
        self.numbers.extend(number(thread, descriptor));
    }

    /// The test gives a socket this name.
    pub fn owns_name(&mut self, name: Vec<u8>) {
        self.names.insert(name);
    }

    /// The same of one of its descriptors.
    pub fn has_bound(&mut self, thread: u32, descriptor: u64, name: Partner) {
        if let Some(number) = number(thread, descriptor) {
            self.bound.insert(number, name);
        }
    }

    /// Whether the test gave a socket this name.
    pub fn has_name(&self, name: &[u8]) -> bool {
        self.names.contains(name)
    }

    /// Whether it is the test itself that answers at a port now.
    pub fn has_port(&self, thread: u32, port: u16) -> bool {
        let answers = |socket: &Socket| socket.port == port && [LISTENING, RECEIVING].contains(&socket.state);
        facts::sockets(&thread.to_string())
            .iter()
            .any(|socket| answers(socket) && self.numbers.contains(&socket.number))
    }

    /// Whether a port is taken by others.
    pub fn is_used_by_others(&self, thread: u32, port: u16) -> bool {
        let is_others = |socket: &Socket| socket.port == port && !self.numbers.contains(&socket.number);
        facts::sockets(&thread.to_string()).iter().any(|socket| is_others(socket) && socket.number != 0)
    }

    /// A process of the test connects to a socket of the test.
    pub fn connects(&mut self, to: Partner) {
        self.connected.insert(to);
    }

    /// A thread waits for a connection.
    pub fn waits(&mut self, thread: u32, descriptor: u64) {
        let Some(number) = number(thread, descriptor) else { return };
        let place = self.bound.get(&number).cloned().or_else(|| {
            let sockets = facts::sockets(&thread.to_string());
            sockets.iter().find(|socket| socket.number == number).map(|socket| Partner::Port(socket.port))
        });
        self.waited.extend(place);
    }

    /// Where the test has waited for connections that were none of its own.
    pub fn strangers(&self) -> Vec<String> {
        let strangers = self.waited.difference(&self.connected).map(|partner| match partner {
            Partner::Path(path) => path.to_string_lossy().into_owned(),
            Partner::Abstract(name) => format!("@{}", String::from_utf8_lossy(name)),
            Partner::Port(port) => format!("port {port}"),
            Partner::Nobody | Partner::Machine(_) | Partner::Family(_) => "a socket".to_owned(),
        });
        strangers.collect()
    }
}

/// The number that the kernel shows a socket by.
fn number(thread: u32, descriptor: u64) -> Option<u64> {
    let link = fs::read_link(Path::new(&format!("/proc/{thread}/fd/{descriptor}"))).ok()?;
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inet(address: [u8; 4], port: u16) -> Vec<u8> {
        let mut bytes = (libc::AF_INET as u16).to_ne_bytes().to_vec();
        bytes.extend(port.to_be_bytes());
        bytes.extend(address);
        bytes.extend([0; 8]);
        bytes
    }

    fn inet6(address: Ipv6Addr, port: u16) -> Vec<u8> {
        let mut bytes = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
        bytes.extend(port.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(address.octets());
        bytes
    }

    #[test]
    fn addresses_are_told_apart() {
        assert_eq!(partner(&inet([127, 0, 0, 1], 80)), Partner::Port(80));
        assert_eq!(partner(&inet([192, 0, 2, 1], 80)), Partner::Machine("192.0.2.1".parse().unwrap()));
        assert_eq!(partner(&inet6(Ipv6Addr::LOCALHOST, 7)), Partner::Port(7));
        assert_eq!(partner(&inet6("::ffff:127.0.0.1".parse().unwrap(), 7)), Partner::Port(7));
        let far = "2001:db8::1".parse().unwrap();
        assert_eq!(partner(&inet6(far, 7)), Partner::Machine(IpAddr::V6(far)));
        let local = (libc::AF_UNIX as u16).to_ne_bytes();
        assert_eq!(partner(&[&local[..], b"/run/x\0\0"].concat()), Partner::Path("/run/x".into()));
        assert_eq!(partner(&[&local[..], b"\0name"].concat()), Partner::Abstract(b"name".to_vec()));
        assert_eq!(partner(&[1]), Partner::Nobody);
        assert_eq!(partner(&inet([1, 2, 3, 4], 5)[..6]), Partner::Nobody);
        assert_eq!(partner(&(libc::AF_VSOCK as u16).to_ne_bytes()), Partner::Family(libc::AF_VSOCK as u16));
    }
}
