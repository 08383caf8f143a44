//! Socket addresses: whether one belongs to this machine, to another machine, or to nobody.
//!
//! In: bytes of socket addresses. Out: the peer ([`Partner`]) and the port.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

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
    let Some(family) = address.get(..2).map(|bytes| u16::from_ne_bytes([bytes[0], bytes[1]]))
    else {
        return Partner::Nobody;
    };
    let port = || address.get(2..4).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    match i32::from(family) {
        libc::AF_UNSPEC | libc::AF_NETLINK | libc::AF_ALG => Partner::Nobody,
        libc::AF_UNIX => unix(&address[2..]),
        libc::AF_INET => {
            match address.get(4..8).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()) {
                Some(bytes) => internet(IpAddr::V4(Ipv4Addr::from(bytes)), port()),
                None => Partner::Nobody,
            }
        }
        libc::AF_INET6 => {
            match address.get(8..24).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok()) {
                Some(bytes) => internet(Ipv6Addr::from(bytes).to_canonical(), port()),
                None => Partner::Nobody,
            }
        }
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
        assert_eq!(
            partner(&inet([192, 0, 2, 1], 80)),
            Partner::Machine("192.0.2.1".parse().unwrap())
        );
        assert_eq!(partner(&inet6(Ipv6Addr::LOCALHOST, 7)), Partner::Port(7));
        assert_eq!(partner(&inet6("::ffff:127.0.0.1".parse().unwrap(), 7)), Partner::Port(7));
        let far = "2001:db8::1".parse().unwrap();
        assert_eq!(partner(&inet6(far, 7)), Partner::Machine(IpAddr::V6(far)));
        let local = (libc::AF_UNIX as u16).to_ne_bytes();
        assert_eq!(partner(&[&local[..], b"/run/x\0\0"].concat()), Partner::Path("/run/x".into()));
        assert_eq!(partner(&[&local[..], b"\0name"].concat()), Partner::Abstract(b"name".to_vec()));
        assert_eq!(partner(&[1]), Partner::Nobody);
        assert_eq!(partner(&inet([1, 2, 3, 4], 5)[..6]), Partner::Nobody);
        assert_eq!(
            partner(&(libc::AF_VSOCK as u16).to_ne_bytes()),
            Partner::Family(libc::AF_VSOCK as u16)
        );
    }
}
