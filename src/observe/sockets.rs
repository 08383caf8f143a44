//! The peers of a test's sockets. A test's own processes may use sockets among themselves; an
//! answer from any other process is an input that cannot be compared, and refuses the run.
//!
//! In: peers, `/proc/PID/net`. Out: the sockets that belong to the test.

use super::addresses::Partner;
use super::clients::Clients;
use super::facts::{self, LISTENING, RECEIVING, Socket};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs;
use std::path::Path;

/// The sockets that a test has for itself.
#[derive(Debug, Default)]
pub struct Sockets {
    numbers: FxHashSet<u64>,
    names: FxHashSet<Vec<u8>>,
    /// The names that sockets were given, other than ports.
    bound: FxHashMap<u64, Partner>,
    /// Who has connected to the test's servers.
    clients: Clients,
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
        let answers =
            |socket: &Socket| socket.port == port && [LISTENING, RECEIVING].contains(&socket.state);
        facts::sockets(&thread.to_string())
            .iter()
            .any(|socket| answers(socket) && self.numbers.contains(&socket.number))
    }

    /// Whether a port is taken by others.
    pub fn is_used_by_others(&self, thread: u32, port: u16) -> bool {
        let is_others =
            |socket: &Socket| socket.port == port && !self.numbers.contains(&socket.number);
        facts::sockets(&thread.to_string())
            .iter()
            .any(|socket| is_others(socket) && socket.number != 0)
    }

    /// A process of the test connects to a socket of the test.
    pub fn connects(&mut self, thread: u32, descriptor: u64, to: Partner) {
        self.clients.connects(number(thread, descriptor), to);
    }

    /// A thread is about to let others connect to its socket.
    pub fn listens(&mut self, thread: u32, descriptor: u64) {
        self.owns(thread, descriptor);
        self.clients.listens(thread);
    }

    /// A thread makes a call, whatever it is.
    pub fn goes_on(&mut self, thread: u32) {
        self.clients.goes_on(thread);
    }

    /// A thread waits for a connection.
    pub fn waits(&mut self, thread: u32, descriptor: u64) {
        let Some(number) = number(thread, descriptor) else { return };
        let named = self.bound.get(&number).cloned();
        let is_certain = is_blocking(thread, descriptor) && !is_interrupted(thread);
        self.clients.waits(thread, number, named, is_certain);
    }

    /// Where others than the test's own processes have connected to it, or must have, and why that
    /// is known.
    pub fn strangers(&mut self) -> Vec<(String, &'static str)> {
        let strangers = self.clients.strangers().into_iter().map(|(partner, why)| {
            let name = match partner {
                Partner::Path(path) => path.to_string_lossy().into_owned(),
                Partner::Abstract(name) => format!("@{}", String::from_utf8_lossy(&name)),
                Partner::Port(port) => format!("port {port}"),
                Partner::Nobody | Partner::Machine(_) | Partner::Family(_) => "a socket".to_owned(),
            };
            (name, why)
        });
        strangers.collect()
    }
}

/// Whether calls wait at a descriptor.
fn is_blocking(thread: u32, descriptor: u64) -> bool {
    let text =
        fs::read_to_string(format!("/proc/{thread}/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_NONBLOCK == 0)
}

/// Whether signals may interrupt a thread's calls, which are then made again. (Python handles
/// SIGINT, which nobody sends to it.)
fn is_interrupted(thread: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|caught| u64::from_str_radix(caught.trim(), 16).ok());
    caught.is_none_or(|caught| caught & !(1 << (libc::SIGINT - 1)) != 0)
}

/// The number that the kernel shows a socket by.
fn number(thread: u32, descriptor: u64) -> Option<u64> {
    let link = fs::read_link(Path::new(&format!("/proc/{thread}/fd/{descriptor}"))).ok()?;
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}
