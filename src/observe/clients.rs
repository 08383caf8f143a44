//! Counts the connections to servers that a test starts. No stopped call says who connected, so
//! connections from outside the test are found by counting: if a server has received more
//! connections than the test's own processes have made, some came from outside. TCP connections
//! stay in the kernel's tables for a minute after they end (unless they were reset). For other
//! sockets, a server must have received a connection when it continues after waiting.
//!
//! In: stopped calls, tables of sockets. Out: sockets with connections from outside.

use super::addresses::Partner;
use super::facts;
use rustc_hash::{FxHashMap, FxHashSet};

const NOBODY: &str = "is waited at for connections, and no process of the test connects to it";
const SOMEBODY: &str = "has connections of somebody outside the test";

/// Connections to servers of the test.
#[derive(Debug, Default)]
pub struct Clients {
    /// Sockets of the test that connect to a place.
    own: FxHashMap<Partner, FxHashSet<u64>>,
    /// Connections to places at which the test waits: by the client's port, or the number of the
    /// server's socket.
    seen: FxHashMap<Partner, FxHashSet<u64>>,
    /// Where threads wait, for a connection and nothing less, and how many they have got so.
    waiting: FxHashMap<u32, Partner>,
    got: FxHashMap<Partner, usize>,
    /// Both ports of connections from before there was a server: the kernel remembers those that
    /// have ended for a minute.
    before: FxHashSet<(u16, u16)>,
    /// Names of places as the kernel has them.
    names: FxHashMap<String, Partner>,
}

impl Clients {
    /// A socket of the test connects to a place.
    pub fn connects(&mut self, socket: Option<u64>, to: Partner) {
        self.own.entry(to).or_default().extend(socket);
    }

    /// A thread is about to let others connect.
    pub fn listens(&mut self, thread: u32) {
        self.before.extend(
            facts::sockets(&thread.to_string()).iter().map(|socket| (socket.port, socket.other)),
        );
    }

    /// A thread makes another call: what it has waited for has come.
    pub fn goes_on(&mut self, thread: u32) {
        if !self.waiting.is_empty()
            && let Some(place) = self.waiting.remove(&thread)
        {
            *self.got.entry(place).or_default() += 1;
        }
    }

    /// A thread waits at a socket, which has a name unless it has a port. That it has got a
    /// connection when it goes on is certain, or is not.
    pub fn waits(&mut self, thread: u32, socket: u64, named: Option<Partner>, is_certain: bool) {
        let process = thread.to_string();
        let place = match named {
            Some(place) => {
                let names =
                    facts::local_sockets(&process).into_iter().filter(|line| line.number == socket);
                self.names.extend(names.map(|line| (line.name, place.clone())));
                Some(place)
            }
            None => facts::sockets(&process)
                .iter()
                .find(|line| line.number == socket)
                .map(|line| Partner::Port(line.port)),
        };
        let Some(place) = place else { return };
        self.seen.entry(place.clone()).or_default();
        if is_certain && !matches!(place, Partner::Port(_)) {
            self.waiting.insert(thread, place);
        }
        self.look(&process);
    }

    /// Notes the connections that the tables of a process show.
    fn look(&mut self, process: &str) {
        for line in facts::sockets(process) {
            let is_new = line.other != 0 && !self.before.contains(&(line.port, line.other));
            if !is_new {
                continue;
            }
            if let Some(seen) = self.seen.get_mut(&Partner::Port(line.port)) {
                seen.insert(line.other.into());
            }
            if let Some(seen) =
                self.seen.get_mut(&Partner::Port(line.other)).filter(|_| line.other_is_here)
            {
                seen.insert(line.port.into());
            }
        }
        if self.names.is_empty() {
            return;
        }
        for line in facts::local_sockets(process)
            .into_iter()
            .filter(|line| line.is_connected && line.number != 0)
        {
            if let Some(place) = self.names.get(&line.name) {
                self.seen.entry(place.clone()).or_default().insert(line.number);
            }
        }
    }

    /// Places with connections that were none of the test's own.
    pub fn strangers(&mut self) -> Vec<(Partner, &'static str)> {
        if self.seen.is_empty() {
            return Vec::new();
        }
        self.look("self");
        let strangers = self.seen.iter().filter_map(|(place, seen)| {
            let own = self.own.get(place).map(FxHashSet::len);
            let got = self.got.get(place).copied().unwrap_or_default();
            match own {
                None => Some((place.clone(), NOBODY)),
                Some(own) if own < seen.len().max(got) => Some((place.clone(), SOMEBODY)),
                Some(_) => None,
            }
        });
        strangers.collect()
    }
}
