//! Calls that are not about files: sockets, shared memory and queues, other processes, users,
//! filters.
//!
//! In: stopped calls. Out: refusals, and notes of what belongs to the test.

use super::act::Act;
use super::addresses::{Partner, partner, port};
use super::call::Call;
use super::calls::{MOUNTS, NEW_NAMESPACES, PTRACE_TRACEME};
use super::content::same_file;
use super::entries::Sight;
use super::facts::Fact;
use super::listing::Kind;
use super::memory;
use super::resolve::Found;
use super::supervisor::Supervisor;
use crate::model::{Why, codes};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// More is not read of an address.
const LONGEST_ADDRESS: u64 = 128;
/// The size of `struct msghdr`, and of the entries of an array of them.
const HEADER: u64 = 56;
const HEADER_OF_MANY: u64 = 64;
/// No more messages than this are looked at in one call.
const MOST_MESSAGES: u64 = 64;
/// As many instructions as a filter may have.
const LONGEST_FILTER: usize = 4096;

const NETWORK: &str = "is on the network";

impl Supervisor {
    pub(super) fn note_other(&mut self, call: &Call, act: Act) -> io::Result<()> {
        match act {
            Act::Socket => self.socket(call),
            Act::Connect => self.talks(call, call.argument(1), call.argument(2)),
            Act::SendTo => self.talks(call, call.argument(4), call.argument(5)),
            Act::SendMessage { many } => self.sends(call, many),
            Act::Bind => self.bind(call),
            Act::Control => self.note_control(call),
            Act::Accept => {
                self.sockets.waits(call.thread(), call.argument(0));
                Ok(())
            }
            Act::Listen => {
                self.sockets.listens(call.thread(), call.argument(0));
                Ok(())
            }
            Act::Key(table) => self.key(call, table),
            Act::Queue => self.queue(call),
            Act::RemoveQueue => self.remove_queue(call),
            Act::CloneHow => {
                let flags = memory::number(call.thread(), call.argument(0))?;
                let lost = flags as u32 & NEW_NAMESPACES != 0;
                self.lost |= lost;
                self.refuse_if(call, lost, (codes::OTHER_ROOT, MOUNTS))
            }
            Act::LookInto { process } => {
                if call.notification.number == libc::SYS_process_vm_readv {
                    self.reads_memory(call, call.int(process) as u32);
                }
                self.look_into(call, call.int(process))
            }
            Act::Priority { process } => self.note_priority(call, process),
            Act::Debug => {
                self.has_debuggers = true;
                let is_own = call.int(0) as u32 == PTRACE_TRACEME;
                if is_own {
                    // It is about to start another program, or shows its own code as it is now.
                    self.shows_memory(call, call.thread());
                } else {
                    self.gets_debugger(call.int(1) as u32);
                }
                if is_own { Ok(()) } else { self.look_into(call, call.int(1)) }
            }
            Act::Filter { flags } => self.filter(call, flags),
            Act::Become { group, count } => self.becomes(call, group, count),
            _ => Ok(()),
        }
    }

    pub(super) fn refuse_if(
        &mut self,
        call: &Call,
        condition: bool,
        why: impl Into<Why>,
    ) -> io::Result<()> {
        if condition {
            let subject = call.program_name();
            self.ledger.refuse(subject, why);
        }
        Ok(())
    }

    /// Routes and addresses of this machine may be asked for; the crypto functions of the kernel
    /// too.
    fn socket(&mut self, call: &Call) -> io::Result<()> {
        let (family, protocol) = (call.int(0), call.int(2));
        let harmless = family == libc::AF_ALG
            || (family == libc::AF_NETLINK && protocol == libc::NETLINK_ROUTE);
        self.refuse_if(
            call,
            !harmless,
            (codes::NETWORK, format!("makes a socket that is not watched (family {family})")),
        )
    }

    fn talks(&mut self, call: &Call, address: u64, length: u64) -> io::Result<()> {
        self.sockets.owns(call.thread(), call.argument(0));
        if address == 0 {
            return Ok(());
        }
        let address = memory::bytes(call.thread(), address, length.min(LONGEST_ADDRESS) as usize)?;
        match partner(&address) {
            Partner::Nobody => {}
            Partner::Path(path) => self.talks_to_path(call, &path),
            Partner::Abstract(name) if self.sockets.has_name(&name) => {
                self.sockets.connects(call.thread(), call.argument(0), Partner::Abstract(name));
            }
            Partner::Abstract(name) => {
                let name = format!("@{}", String::from_utf8_lossy(&name));
                self.ledger.refuse(
                    name,
                    (codes::OUTSIDE_PROCESS, "is a socket of somebody outside the test"),
                );
            }
            Partner::Port(port) if self.sockets.has_port(call.thread(), port) => {
                self.sockets.connects(call.thread(), call.argument(0), Partner::Port(port));
            }
            Partner::Port(port) => {
                let why =
                    (codes::NETWORK, "is connected to, and no process of the test listens there");
                self.ledger.refuse(format!("port {port}"), why);
            }
            Partner::Machine(address) => {
                self.ledger.refuse(address.to_string(), (codes::NETWORK, NETWORK))
            }
            Partner::Family(family) => {
                let why = format!("has an address that is not watched (family {family})");
                self.ledger.refuse("a socket", (codes::NETWORK, why));
            }
        }
        Ok(())
    }

    fn talks_to_path(&mut self, call: &Call, path: &Path) {
        let Some(place) = self.place_of(call, None, path.as_os_str().as_bytes(), true) else {
            return;
        };
        match place.kind() {
            Some(Kind::Socket) => {
                self.saw(&place, Sight::Content);
                self.sockets.connects(call.thread(), call.argument(0), Partner::Path(place.path));
            }
            _ => self.saw(&place, Sight::Kind),
        }
    }

    fn sends(&mut self, call: &Call, many: bool) -> io::Result<()> {
        self.uses_descriptor(call, 0);
        let (size, count) = match many {
            true => (HEADER_OF_MANY, call.argument(2).min(MOST_MESSAGES)),
            false => (HEADER, 1),
        };
        for index in 0..count {
            let header =
                memory::bytes(call.thread(), call.argument(1) + index * size, HEADER as usize)?;
            let (address, length) = (memory::number_in(&header, 0), memory::number_in(&header, 8));
            if address != 0 {
                self.talks(call, address, length & u64::from(u32::MAX))?;
            }
            self.hands_over(call, memory::number_in(&header, 32), memory::number_in(&header, 40))?;
        }
        Ok(())
    }

    fn bind(&mut self, call: &Call) -> io::Result<()> {
        self.sockets.owns(call.thread(), call.argument(0));
        let length = call.argument(2).min(LONGEST_ADDRESS) as usize;
        let address = memory::bytes(call.thread(), call.argument(1), length)?;
        if let Some(port) = port(&address) {
            self.binds_port(call, port);
        }
        match partner(&address) {
            Partner::Abstract(name) => self.binds_name(call, name),
            Partner::Path(path) => {
                let Some(place) = self.place_of(call, None, path.as_os_str().as_bytes(), false)
                else {
                    return Ok(());
                };
                self.saw(&place, Sight::Kind);
                if matches!(place.found, Found::Missing) {
                    self.touches(&place);
                    self.sockets.has_bound(
                        call.thread(),
                        call.argument(0),
                        Partner::Path(place.path),
                    );
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A port of the test's choice can be taken already.
    fn binds_port(&mut self, call: &Call, port: u16) {
        if port == 0 || is_in_other_network(call.thread()) {
            return;
        }
        if self.sockets.is_used_by_others(call.thread(), port) {
            let why = (codes::NETWORK, "is in use by a process outside the test");
            self.ledger.refuse(format!("port {port}"), why);
        } else {
            self.ledger.learns(&Fact::Port(port));
        }
    }

    fn binds_name(&mut self, call: &Call, name: Vec<u8>) {
        let fact = Fact::SocketName(name.clone());
        if !self.sockets.has_name(&name) {
            if !is_in_other_network(call.thread()) && fact.is_so() {
                let name = format!("@{}", String::from_utf8_lossy(&name));
                return self.ledger.refuse(
                    name,
                    (codes::OUTSIDE_PROCESS, "is a socket of somebody outside the test"),
                );
            }
            self.ledger.learns(&fact);
            self.sockets.owns_name(name.clone());
        }
        self.sockets.has_bound(call.thread(), call.argument(0), Partner::Abstract(name));
    }

    /// At the end: what others have used, or can use from now on.
    pub fn refuse_what_is_shared(&mut self) {
        for (partner, why) in self.sockets.strangers() {
            self.ledger.refuse(partner, (codes::NETWORK, why));
        }
        for name in &self.queues {
            let name = String::from_utf8_lossy(name).into_owned();
            self.ledger
                .refuse(name, (codes::OUTSIDE_PROCESS, "is a message queue that is left behind"));
        }
        for (table, key) in &self.keys {
            if Fact::Key((*table).to_owned(), *key as u32).is_so() {
                let why = (codes::OUTSIDE_PROCESS, "is shared memory that is left behind");
                self.ledger.refuse(format!("{table} key {key:#x}"), why);
            }
        }
    }

    /// A key of System V IPC is the test's own if it was not there when the test made it.
    fn key(&mut self, call: &Call, table: &'static str) -> io::Result<()> {
        let key = call.argument(0) & u64::from(u32::MAX);
        let flags = call.int(if table == "msg" { 1 } else { 2 });
        if self.keys.contains(&(table, key)) {
            return Ok(());
        }
        let fact = Fact::Key(table.to_owned(), key as u32);
        if flags & libc::IPC_CREAT != 0 && !fact.is_so() {
            self.ledger.learns(&fact);
            self.keys.insert((table, key));
            return Ok(());
        }
        let why = (codes::OUTSIDE_PROCESS, "is shared with processes outside the test");
        self.ledger.refuse(format!("{table} key {key:#x}"), why);
        Ok(())
    }

    fn queue(&mut self, call: &Call) -> io::Result<()> {
        let Some(name) = memory::string(call.thread(), call.argument(0))? else { return Ok(()) };
        let exclusive = libc::O_CREAT | libc::O_EXCL;
        let fact = Fact::MessageQueue(name.clone());
        if call.int(1) & exclusive == exclusive && !fact.is_so() {
            self.ledger.learns(&fact);
            self.queues.insert(name);
        } else if !self.queues.contains(&name) {
            let name = String::from_utf8_lossy(&name).into_owned();
            self.ledger
                .refuse(name, (codes::OUTSIDE_PROCESS, "is a message queue that others can use"));
        }
        Ok(())
    }

    fn remove_queue(&mut self, call: &Call) -> io::Result<()> {
        let Some(name) = memory::string(call.thread(), call.argument(0))? else { return Ok(()) };
        let fact = Fact::MessageQueue(name.clone());
        if !self.queues.remove(&name) {
            let is_there = fact.is_so();
            self.refuse_if(
                call,
                is_there,
                (codes::OUTSIDE_PROCESS, "removes a message queue that is not its own"),
            )?;
            self.ledger.learns(&fact);
        }
        Ok(())
    }

    /// A filter of the test's own works together with ours, with two exceptions: a second listener
    /// is impossible, and calls that it wants to show to a tracer do not get there when we let them
    /// go.
    fn filter(&mut self, call: &Call, flags: Option<usize>) -> io::Result<()> {
        let is_filter = match flags {
            Some(_) => call.argument(0) as u32 == libc::SECCOMP_SET_MODE_FILTER,
            None => {
                call.int(0) == libc::PR_SET_SECCOMP
                    && call.argument(1) as u32 == libc::SECCOMP_MODE_FILTER
            }
        };
        if !is_filter {
            return Ok(());
        }
        let listens = flags.is_some_and(|index| {
            call.argument(index) & libc::SECCOMP_FILTER_FLAG_NEW_LISTENER != 0
        });
        if listens && is_ourselves(call) {
            // It asks whether it is watched, and then gets out of the way.
            return Ok(());
        }
        if listens || self.traces(call)? {
            let subject = call.program_name();
            self.disturb(
                subject,
                "filters system calls itself, which does not work below another watcher",
            );
        }
        Ok(())
    }

    fn traces(&self, call: &Call) -> io::Result<bool> {
        const RETURN: u16 = 0x06;
        let program = memory::bytes(call.thread(), call.argument(2), 16)?;
        let [low, high, ..] = program[..] else { return Ok(false) };
        let length = usize::from(u16::from_ne_bytes([low, high])).min(LONGEST_FILTER);
        let steps = memory::bytes(call.thread(), memory::number_in(&program, 8), 8 * length)?;
        Ok(steps.chunks_exact(8).any(|step| {
            let code = u16::from_ne_bytes([step[0], step[1]]);
            let value = u32::from_ne_bytes([step[4], step[5], step[6], step[7]]);
            code == RETURN && value & libc::SECCOMP_RET_ACTION_FULL == libc::SECCOMP_RET_TRACE
        }))
    }

    /// Another user may read other files; we look with our own eyes.
    fn becomes(&mut self, call: &Call, group: bool, count: usize) -> io::Result<()> {
        const UNCHANGED: u32 = u32::MAX;
        let own = if group { self.group } else { self.user };
        let other = (0..count)
            .map(|index| call.argument(index) as u32)
            .any(|id| id != own && id != UNCHANGED);
        self.refuse_if(
            call,
            other,
            (codes::ANOTHER_USER, "becomes another user, who may read other files"),
        )
    }
}

/// Whether a thread has ports and names of its own.
fn is_in_other_network(thread: u32) -> bool {
    let [theirs, ours] = [format!("/proc/{thread}/ns/net"), "/proc/self/ns/net".to_owned()]
        .map(|link| fs::read_link(link).ok());
    theirs != ours
}

/// Whether it is a `tasting run` within the test that makes a call.
pub(super) fn is_ourselves(call: &Call) -> bool {
    let [theirs, ours] =
        [format!("/proc/{}/exe", call.thread()), "/proc/self/exe".to_owned()].map(fs::metadata);
    theirs.is_ok_and(|theirs| ours.is_ok_and(|ours| same_file(&theirs, &ours)))
}
