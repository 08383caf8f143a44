//! The filter: a small program for the kernel that says for each system call, by its number and arguments,
//! whether it is looked at. Everything else costs nothing, since the kernel remembers which calls a filter
//! allows whatever their arguments are.
//!
//! In: the table of calls, the descriptors that the test inherits from outside. Out: instructions.

use super::calls::{ARCHITECTURE, CALLS, CALLS_OF_32_BITS, OLD_CALLS, Row, When};
use libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_USER_NOTIF, sock_filter};

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const MASK: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Where the parts of `seccomp_data` stand.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// Numbers from here on belong to the x32 ABI. The one below is what a tracer puts in to skip a call.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;
#[cfg(target_arch = "x86_64")]
const SKIPPED: u32 = u32::MAX;

fn step(code: u16, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code, jt: yes, jf: no, k }
}

/// A filter that stops nothing.
pub fn harmless() -> Vec<sock_filter> {
    vec![step(RETURN, SECCOMP_RET_ALLOW, 0, 0)]
}

/// The filter for a test that inherits these descriptors from outside.
pub fn program(foreign: &[i32]) -> Vec<sock_filter> {
    let mut program = vec![step(LOAD, MACHINE, 0, 0)];
    let other = other_architectures();
    program.push(step(EQUAL, ARCHITECTURE, other.len() as u8, 0));
    program.extend(other);
    program.push(step(LOAD, NUMBER, 0, 0));
    #[cfg(target_arch = "x86_64")]
    program.extend([step(AT_LEAST, X32, 0, 2), step(EQUAL, SKIPPED, 1, 0), step(RETURN, SECCOMP_RET_USER_NOTIF, 0, 0)]);
    let mut blocks: Vec<(u32, Vec<sock_filter>)> =
        CALLS.iter().chain(OLD_CALLS).map(|row| (row.0 as u32, block(row, foreign))).collect();
    blocks.retain(|(_, block)| !block.is_empty());
    blocks.sort_by_key(|(number, _)| *number);
    program.extend(search(&blocks));
    program
}

/// Finds the block of a number by halving. The kernel tries a new filter with every number that there is, to
/// learn which calls are always allowed: with one comparison after the other that took half a millisecond.
fn search(blocks: &[(u32, Vec<sock_filter>)]) -> Vec<sock_filter> {
    match blocks {
        [] => vec![step(RETURN, SECCOMP_RET_ALLOW, 0, 0)],
        [(number, block)] => {
            let mut steps = vec![step(EQUAL, *number, 0, block.len() as u8)];
            steps.extend(block);
            steps.push(step(RETURN, SECCOMP_RET_ALLOW, 0, 0));
            steps
        }
        _ => {
            let (low, high) = blocks.split_at(blocks.len() / 2);
            let first = search(low);
            let mut steps = vec![step(AT_LEAST, high[0].0, 0, 1), step(JUMP, first.len() as u32, 0, 0)];
            steps.extend(first);
            steps.extend(search(high));
            steps
        }
    }
}

/// Programs of another architecture are let go, but one look at them is needed to know that there are any.
fn other_architectures() -> Vec<sock_filter> {
    let mut steps = vec![step(LOAD, NUMBER, 0, 0)];
    for number in CALLS_OF_32_BITS {
        steps.extend([step(EQUAL, *number, 0, 1), step(RETURN, SECCOMP_RET_USER_NOTIF, 0, 0)]);
    }
    steps.push(step(RETURN, SECCOMP_RET_ALLOW, 0, 0));
    steps
}

/// What happens once the number is known to be the row's; nothing if the row can never be met.
fn block(row: &Row, foreign: &[i32]) -> Vec<sock_filter> {
    if row.2.contains(&When::Always) {
        return vec![step(RETURN, SECCOMP_RET_USER_NOTIF, 0, 0)];
    }
    let mut steps: Vec<_> = row.2.iter().flat_map(|when| condition(when, foreign)).collect();
    if !steps.is_empty() {
        steps.push(step(RETURN, SECCOMP_RET_ALLOW, 0, 0));
    }
    steps
}

/// Returns "look at it" if the condition holds, else goes on behind.
fn condition(when: &When, foreign: &[i32]) -> Vec<sock_filter> {
    let look = step(RETURN, SECCOMP_RET_USER_NOTIF, 0, 0);
    let low = |argument: usize| step(LOAD, ARGUMENTS + 8 * argument as u32, 0, 0);
    let high = |argument: usize| step(LOAD, ARGUMENTS + 8 * argument as u32 + 4, 0, 0);
    match *when {
        When::Always => vec![look],
        When::NotNull(argument) => {
            vec![low(argument), step(EQUAL, 0, 0, 2), high(argument), step(EQUAL, 0, 1, 0), look]
        }
        When::HasBits(argument, bits) => vec![low(argument), step(ANY_BIT, bits, 0, 1), look],
        When::IsAny(argument, mask, values) => any_of(vec![low(argument), step(MASK, mask, 0, 0)], values, look),
        When::IsNot(argument, mask, values) => {
            let mut steps = vec![low(argument), step(MASK, mask, 0, 0)];
            for (index, value) in values.iter().enumerate() {
                steps.push(step(EQUAL, *value, (values.len() - index) as u8, 0));
            }
            steps.push(look);
            steps
        }
        When::Foreign(_) if foreign.is_empty() => Vec::new(),
        When::Foreign(argument) => {
            let numbers: Vec<u32> = foreign.iter().map(|&number| number as u32).collect();
            any_of(vec![low(argument)], &numbers, look)
        }
    }
}

/// Looks if the loaded argument is any of the values.
fn any_of(mut steps: Vec<sock_filter>, values: &[u32], look: sock_filter) -> Vec<sock_filter> {
    for value in values {
        steps.extend([step(EQUAL, *value, 0, 1), look]);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a filter as the kernel would.
    fn run(program: &[sock_filter], number: i64, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend((number as u32).to_le_bytes());
        data.extend(ARCHITECTURE.to_le_bytes());
        data.extend(0u64.to_le_bytes());
        arguments.iter().for_each(|argument| data.extend(argument.to_le_bytes()));
        let (mut at, mut value) = (0, 0);
        loop {
            let now = program[at];
            at += 1;
            let jump = |yes| usize::from(if yes { now.jt } else { now.jf });
            match now.code {
                LOAD => value = u32::from_le_bytes(data[now.k as usize..][..4].try_into().unwrap()),
                MASK => value &= now.k,
                EQUAL => at += jump(value == now.k),
                AT_LEAST => at += jump(value >= now.k),
                JUMP => at += now.k as usize,
                ANY_BIT => at += jump(value & now.k != 0),
                _ => return now.k,
            }
        }
    }

    #[test]
    fn only_what_matters_is_looked_at() {
        let program = program(&[0, 7]);
        let looks = |number, arguments| run(&program, number, arguments) == SECCOMP_RET_USER_NOTIF;
        assert!(
            looks(libc::SYS_openat, [0; 6])
                && !looks(libc::SYS_close, [0; 6])
                && !looks(libc::SYS_mmap, [0, 0, 0, 0, 3, 0])
        );
        assert!(looks(libc::SYS_mmap, [0, 0, 0, 0, 7, 0]));
        assert!(looks(libc::SYS_read, [0; 6]) && looks(libc::SYS_read, [7, 0, 0, 0, 0, 0]));
        assert!(!looks(libc::SYS_read, [3, 0, 0, 0, 0, 0]) && looks(libc::SYS_splice, [1, 0, 7, 0, 0, 0]));
        assert!(looks(libc::SYS_sendto, [1, 0, 0, 0, 8, 0]) && looks(libc::SYS_sendto, [1, 0, 0, 0, 1 << 40, 0]));
        assert!(!looks(libc::SYS_sendto, [1, 0, 0, 0, 0, 0]));
        let (inet, raw, stream) = (libc::AF_INET as u64, libc::SOCK_RAW as u64, libc::SOCK_STREAM as u64);
        let close = libc::SOCK_CLOEXEC as u64;
        assert!(!looks(libc::SYS_socket, [inet, stream | close, 0, 0, 0, 0]));
        assert!(looks(libc::SYS_socket, [inet, raw | close, 0, 0, 0, 0]));
        assert!(looks(libc::SYS_socket, [libc::AF_PACKET as u64, stream, 0, 0, 0, 0]));
        assert!(looks(libc::SYS_clone, [libc::CLONE_NEWNS as u64, 0, 0, 0, 0, 0]));
        assert!(!looks(libc::SYS_clone, [libc::CLONE_VM as u64, 0, 0, 0, 0, 0]));
        assert!(looks(libc::SYS_shmget, [5, 0, 0, 0, 0, 0]) && !looks(libc::SYS_shmget, [0; 6]));
    }

    #[test]
    fn every_row_is_found() {
        let program = program(&[]);
        for row in CALLS.iter().chain(OLD_CALLS).filter(|row| row.2 == [When::Always]) {
            assert_eq!(run(&program, row.0, [0; 6]), SECCOMP_RET_USER_NOTIF, "{}", row.0);
        }
        assert_eq!(run(&program, libc::SYS_close, [0; 6]), SECCOMP_RET_ALLOW);
        assert_eq!(run(&program, 9999, [0; 6]), SECCOMP_RET_ALLOW);
    }

    #[test]
    fn without_inherited_descriptors_reading_costs_nothing() {
        let program = program(&[]);
        assert_eq!(run(&program, libc::SYS_read, [0; 6]), SECCOMP_RET_ALLOW);
        assert_eq!(run(&program, libc::SYS_write, [0; 6]), SECCOMP_RET_ALLOW);
    }
}
