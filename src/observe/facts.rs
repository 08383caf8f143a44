//! What a run can learn about the machine without opening a file: whether a port, a name or a key
//! is free, whether there is a terminal and how large it is, whether the output is a file. Each
//! fact has a name, by which its value can be asked for again.
//!
//! In: names of facts. Out: their values.

use super::kernel;
use crate::model::{Hash, Hasher};
use rustix::termios::tcgetwinsize;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A fact that can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Whether any socket uses a port of this machine.
    Port(u16),
    /// Whether any socket has a name without a file.
    SocketName(Vec<u8>),
    /// Whether there is a POSIX message queue of this name.
    MessageQueue(Vec<u8>),
    /// Whether there is a key in this table of System V IPC.
    Key(String, u32),
    /// Whether there is a controlling terminal.
    Terminal,
    /// The size of the terminal at standard input.
    TerminalSize,
    /// Whether standard output (1) or standard error (2) is a file.
    OutputFile(i32),
}

impl Fact {
    /// The name by which it is kept. No text of a test's own comes before its end.
    pub fn name(&self) -> PathBuf {
        let text = match self {
            Fact::Port(port) => format!("port {port}").into_bytes(),
            Fact::SocketName(name) => [b"socket ", &name[..]].concat(),
            Fact::MessageQueue(name) => [b"queue ", &name[..]].concat(),
            Fact::Key(table, key) => format!("key {table} {key}").into_bytes(),
            Fact::Terminal => b"terminal".to_vec(),
            Fact::TerminalSize => b"terminal size".to_vec(),
            Fact::OutputFile(number) => format!("output file {number}").into_bytes(),
        };
        PathBuf::from(std::ffi::OsStr::from_bytes(&text))
    }

    fn of_name(name: &[u8]) -> Option<Fact> {
        let text = || std::str::from_utf8(name).ok();
        if let Some(name) = name.strip_prefix(b"socket ") {
            return Some(Fact::SocketName(name.to_vec()));
        }
        if let Some(name) = name.strip_prefix(b"queue ") {
            return Some(Fact::MessageQueue(name.to_vec()));
        }
        match text()?.split(' ').collect::<Vec<_>>()[..] {
            ["port", port] => Some(Fact::Port(port.parse().ok()?)),
            ["key", table, key] => Some(Fact::Key(table.to_owned(), key.parse().ok()?)),
            ["terminal"] => Some(Fact::Terminal),
            ["terminal", "size"] => Some(Fact::TerminalSize),
            ["output", "file", number] => Some(Fact::OutputFile(number.parse().ok()?)),
            _ => None,
        }
    }

    /// Whether somebody has it; for a terminal, whether there is one.
    pub fn is_so(&self) -> bool {
        match self {
            Fact::Port(port) => is_port_used("self", *port),
            Fact::SocketName(name) => is_socket_name_used(name),
            Fact::MessageQueue(name) => kernel::has_message_queue(name),
            Fact::Key(table, key) => has_key(table, *key),
            Fact::Terminal => terminal_of("self") != Some(0),
            Fact::TerminalSize => true,
            Fact::OutputFile(number) => kernel::duplicate(*number)
                .and_then(|file| file.metadata().ok())
                .is_some_and(|found| found.is_file()),
        }
    }

    /// Its value.
    pub fn value(&self) -> Hash {
        let mut hasher = Hasher::new("fact");
        match self {
            Fact::TerminalSize => {
                let size = tcgetwinsize(std::io::stdin())
                    .map_or((0, 0), |size| (size.ws_row, size.ws_col));
                hasher.number(size.0.into()).number(size.1.into());
            }
            _ => _ = hasher.number(self.is_so().into()),
        }
        hasher.finish()
    }
}

/// The value that the fact of a name has now.
pub fn value(name: &Path) -> Hash {
    match Fact::of_name(name.as_os_str().as_bytes()) {
        Some(fact) => fact.value(),
        None => Hasher::new("unknown fact").finish(),
    }
}

/// One line of a table of sockets.
pub struct Socket {
    pub port: u16,
    /// The port of the other end; 0 if there is none.
    pub other: u16,
    /// The other end is on this machine, by an address that no other machine has.
    pub other_is_here: bool,
    pub state: u8,
    /// The number that the kernel shows the socket by.
    pub number: u64,
}

/// Of TCP: waits for connections; ended, and only remembered for a minute.
pub const LISTENING: u8 = 0x0a;
const ENDED: u8 = 0x06;
/// Of UDP: has an address of its own.
pub const RECEIVING: u8 = 0x07;

/// The internet sockets that a process (`self`, or a number) can meet.
pub fn sockets(process: &str) -> Vec<Socket> {
    let tables =
        ["tcp", "tcp6", "udp", "udp6"].iter().map(|table| format!("/proc/{process}/net/{table}"));
    tables
        .flat_map(|table| {
            fs::read_to_string(table)
                .unwrap_or_default()
                .lines()
                .skip(1)
                .filter_map(socket)
                .collect::<Vec<_>>()
        })
        .collect()
}

fn socket(line: &str) -> Option<Socket> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, port) = fields.get(1)?.rsplit_once(':')?;
    let (address, other) = fields.get(2)?.rsplit_once(':')?;
    Some(Socket {
        port: u16::from_str_radix(port, 16).ok()?,
        other: u16::from_str_radix(other, 16).ok()?,
        other_is_here: is_loopback(address),
        state: u8::from_str_radix(fields.get(3)?, 16).ok()?,
        number: fields.get(9)?.parse().ok()?,
    })
}

/// Whether an address, in words of the processor's own byte order, is 127.0.0.0/8 or ::1.
fn is_loopback(address: &str) -> bool {
    let words = address
        .as_bytes()
        .chunks(8)
        .map(|word| u32::from_str_radix(str::from_utf8(word).ok()?, 16).ok());
    let words: Option<Vec<[u8; 4]>> = words.map(|word| word.map(u32::to_ne_bytes)).collect();
    const MAPPED: [u8; 4] = [0, 0, 0xff, 0xff];
    matches!(
        words.unwrap_or_default()[..],
        [[127, ..]]
            | [[0, 0, 0, 0], [0, 0, 0, 0], MAPPED, [127, ..]]
            | [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    )
}

/// One line of the table of sockets with names of files, or names of their own.
pub struct LocalSocket {
    pub number: u64,
    pub is_connected: bool,
    pub name: String,
}

/// The sockets of this kind that a process can meet.
pub fn local_sockets(process: &str) -> Vec<LocalSocket> {
    const CONNECTED: &str = "03";
    let table = fs::read(format!("/proc/{process}/net/unix")).unwrap_or_default();
    let lines = String::from_utf8_lossy(&table).into_owned();
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let name = fields.get(7..).map(|words| words.join(" "));
        Some(LocalSocket {
            number: fields.get(6)?.parse().ok()?,
            is_connected: *fields.get(5)? == CONNECTED,
            name: name.filter(|name| !name.is_empty())?,
        })
    };
    lines.lines().skip(1).filter_map(socket).collect()
}

fn is_port_used(process: &str, port: u16) -> bool {
    sockets(process).iter().any(|socket| socket.port == port && socket.state != ENDED)
}

fn is_socket_name_used(name: &[u8]) -> bool {
    let table = fs::read("/proc/self/net/unix").unwrap_or_default();
    // Zeros are shown as `@`, as the first one is.
    let mut shown = b" @".to_vec();
    shown.extend(name.iter().map(|&byte| if byte == 0 { b'@' } else { byte }));
    table.split(|&byte| byte == b'\n').any(|line| line.ends_with(&shown))
}

fn has_key(table: &str, key: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/sysvipc/{table}")).unwrap_or_default();
    let mut keys =
        text.lines().filter_map(|line| line.split_ascii_whitespace().next()?.parse::<i32>().ok());
    keys.any(|other| other as u32 == key)
}

/// The number of a process's controlling terminal; 0 if it has none.
pub fn terminal_of(process: &str) -> Option<i64> {
    const TERMINAL: usize = 4;
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(TERMINAL)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_facts() {
        for fact in [
            Fact::Port(80),
            Fact::SocketName(b"a b\0".to_vec()),
            Fact::MessageQueue(b"/x".to_vec()),
            Fact::Key("shm".to_owned(), 7),
            Fact::Terminal,
            Fact::TerminalSize,
            Fact::OutputFile(2),
        ] {
            assert_eq!(Fact::of_name(fact.name().as_os_str().as_bytes()), Some(fact));
        }
        assert_eq!(Fact::of_name(b"port x"), None);
    }

    #[test]
    fn a_port_in_use_is_not_free() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = Fact::Port(server.local_addr().unwrap().port());
        let used = port.value();
        assert!(port.is_so());
        drop(server);
        assert_ne!(port.value(), used);
    }
}
