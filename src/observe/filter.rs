//! The seccomp filter: a small program for the kernel that decides for each system call, by its
//! number and arguments, whether it is stopped. All other calls cost nothing, since the kernel
//! remembers which calls a filter allows whatever their arguments are.
//!
//! In: the table of calls, the descriptors that the test inherits from outside. Out: filter
//! instructions.

use super::act::{Row, When};
use super::arch::{ARCHITECTURE, CALLS_OF_32_BITS, OLD_CALLS};
use super::calls::{CALLS, HIGHEST, is_led};
use super::instructions::{
    ANY_BIT, ARGUMENTS, AT_LEAST, EQUAL, JUMP, LOAD, MACHINE, MASK, NUMBER, RETURN, step,
};
use super::passes::{Passes, let_own_call_through, let_through};
use libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_USER_NOTIF, sock_filter};

/// The number that a tracer puts in to skip a call.
const SKIPPED: u32 = u32::MAX;

/// A filter that stops nothing.
pub fn harmless() -> Vec<sock_filter> {
    vec![step(RETURN, SECCOMP_RET_ALLOW, 0, 0)]
}

/// The filter for a test that inherits these descriptors from outside.
pub fn program(foreign: &[i32], passes: Option<Passes>) -> Vec<sock_filter> {
    let mut program = vec![step(LOAD, MACHINE, 0, 0)];
    let other = other_architectures();
    program.push(step(EQUAL, ARCHITECTURE, other.len() as u8, 0));
    program.extend(other);
    program.push(step(LOAD, NUMBER, 0, 0));
    // Unknown calls, among them those of the x32 interface.
    let unknown = HIGHEST as u32 + 1;
    program.extend([
        step(AT_LEAST, unknown, 0, 2),
        step(EQUAL, SKIPPED, 1, 0),
        step(RETURN, SECCOMP_RET_USER_NOTIF, 0, 0),
    ]);
    let mut blocks: Vec<(u32, Vec<sock_filter>)> =
        CALLS.iter().chain(OLD_CALLS).map(|row| (row.0 as u32, block(row, foreign))).collect();
    blocks.retain(|(_, block)| !block.is_empty());
    for (number, block) in &mut blocks {
        let passes = passes.filter(|_| is_led((*number).into()));
        let own = passes.map(|passes| let_own_call_through(passes, (*number).into(), foreign));
        block.splice(0..0, own.unwrap_or_default());
        block.splice(0..0, passes.into_iter().flat_map(|passes| let_through(passes.instruction)));
    }
    let (leaves, blocks) = leaves(blocks);
    program.extend(search(&leaves));
    place(program, &blocks)
}

/// What follows from the numbers from one on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaf {
    Return(u32),
    /// The steps of a block.
    Block(usize),
}

/// A jump to a block, before it is known where that will be.
const TO_BLOCK: u16 = u16::MAX;

/// What follows from all numbers, by the first of those from which the same follows; and the
/// blocks. Many calls have the same one.
fn leaves(mut rows: Vec<(u32, Vec<sock_filter>)>) -> (Vec<(u32, Leaf)>, Vec<Vec<sock_filter>>) {
    const ALLOWED: Leaf = Leaf::Return(SECCOMP_RET_ALLOW);
    let fields = |step: &sock_filter| (step.code, step.jt, step.jf, step.k);
    let (mut leaves, mut blocks) = (vec![(0, ALLOWED)], Vec::<Vec<sock_filter>>::new());
    let mut add = |number, leaf| match leaves.last_mut() {
        Some((first, last)) if *first == number => *last = leaf,
        Some((_, last)) if *last == leaf => {}
        _ => leaves.push((number, leaf)),
    };
    rows.sort_by_key(|(number, _)| *number);
    for (number, block) in rows {
        let is_same =
            |other: &Vec<sock_filter>| other.iter().map(fields).eq(block.iter().map(fields));
        let leaf = match (&block[..], blocks.iter().position(is_same)) {
            ([sock_filter { code: RETURN, k, .. }], _) => Leaf::Return(*k),
            (_, Some(known)) => Leaf::Block(known),
            (_, None) => {
                blocks.push(block);
                Leaf::Block(blocks.len() - 1)
            }
        };
        add(number, leaf);
        add(number + 1, ALLOWED);
    }
    (leaves, blocks)
}

/// Finds what follows from a number by halving. The kernel tries a new filter with every number
/// that there is, to learn which calls are always allowed: with one comparison after the other that
/// took half a millisecond.
fn search(leaves: &[(u32, Leaf)]) -> Vec<sock_filter> {
    match leaves {
        [] => vec![step(RETURN, SECCOMP_RET_ALLOW, 0, 0)],
        [(_, Leaf::Return(what))] => vec![step(RETURN, *what, 0, 0)],
        [(_, Leaf::Block(block))] => vec![step(TO_BLOCK, *block as u32, 0, 0)],
        _ => {
            let (low, high) = leaves.split_at(leaves.len() / 2);
            let first = search(low);
            let mut steps = match u8::try_from(first.len()) {
                Ok(length) => vec![step(AT_LEAST, high[0].0, length, 0)],
                Err(_) => {
                    vec![step(AT_LEAST, high[0].0, 0, 1), step(JUMP, first.len() as u32, 0, 0)]
                }
            };
            steps.extend(first);
            steps.extend(search(high));
            steps
        }
    }
}

/// Puts the blocks behind a program, and lets its jumps lead there.
fn place(mut program: Vec<sock_filter>, blocks: &[Vec<sock_filter>]) -> Vec<sock_filter> {
    let end = program.len();
    let start =
        |block: usize| end + blocks[..block].iter().map(|block| block.len() + 1).sum::<usize>();
    for (at, step) in program.iter_mut().enumerate().filter(|(_, step)| step.code == TO_BLOCK) {
        step.code = JUMP;
        step.k = (start(step.k as usize) - at - 1) as u32;
    }
    for block in blocks {
        program.extend(block);
        program.push(step(RETURN, SECCOMP_RET_ALLOW, 0, 0));
    }
    program
}

/// Programs of another architecture are let go, but one look at them is needed to know that there
/// are any.
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
        When::IsAny(argument, mask, values) => {
            any_of(vec![low(argument), step(MASK, mask, 0, 0)], values, look)
        }
        When::IsNot(argument, mask, values) => {
            let mut steps = vec![low(argument), step(MASK, mask, 0, 0)];
            for (index, value) in values.iter().enumerate() {
                steps.push(step(EQUAL, *value, (values.len() - index) as u8, 0));
            }
            steps.push(look);
            steps
        }
        When::Foreign(_) | When::AnyForeign if foreign.is_empty() => Vec::new(),
        When::AnyForeign => vec![look],
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
    use super::super::instructions::{EQUAL_OTHER, SUBTRACT_OTHER, TO_OTHER};
    use super::super::passes::VARIANT;
    use super::super::sites::OwnCall;
    use super::*;

    fn run(program: &[sock_filter], number: i64, arguments: [u64; 6]) -> u32 {
        run_at(program, number, arguments, 0)
    }

    /// Runs a filter as the kernel would.
    fn run_at(program: &[sock_filter], number: i64, arguments: [u64; 6], instruction: u64) -> u32 {
        let mut data = Vec::new();
        data.extend((number as u32).to_le_bytes());
        data.extend(ARCHITECTURE.to_le_bytes());
        data.extend(instruction.to_le_bytes());
        arguments.iter().for_each(|argument| data.extend(argument.to_le_bytes()));
        let (mut at, mut value, mut other) = (0, 0u32, 0);
        loop {
            let now = program[at];
            at += 1;
            let jump = |yes| usize::from(if yes { now.jt } else { now.jf });
            match now.code {
                LOAD => value = u32::from_le_bytes(data[now.k as usize..][..4].try_into().unwrap()),
                MASK => value &= now.k,
                TO_OTHER => other = value,
                SUBTRACT_OTHER => value = value.wrapping_sub(other),
                EQUAL_OTHER => at += jump(value == other),
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
        let program = program(&[0, 7], None);
        let looks = |number, arguments| run(&program, number, arguments) == SECCOMP_RET_USER_NOTIF;
        assert!(
            looks(libc::SYS_openat, [0; 6])
                && !looks(libc::SYS_close, [0; 6])
                && !looks(libc::SYS_mmap, [0, 0, 0, 0, 3, 0])
        );
        assert!(looks(libc::SYS_mmap, [0, 0, 0, 0, 7, 0]));
        assert!(looks(libc::SYS_ppoll, [0; 6]) && looks(libc::SYS_epoll_ctl, [3, 1, 7, 0, 0, 0]));
        assert!(looks(libc::SYS_read, [0; 6]) && looks(libc::SYS_read, [7, 0, 0, 0, 0, 0]));
        assert!(
            !looks(libc::SYS_read, [3, 0, 0, 0, 0, 0])
                && looks(libc::SYS_splice, [1, 0, 7, 0, 0, 0])
        );
        assert!(
            looks(libc::SYS_sendto, [1, 0, 0, 0, 8, 0])
                && looks(libc::SYS_sendto, [1, 0, 0, 0, 1 << 40, 0])
        );
        assert!(!looks(libc::SYS_sendto, [1, 0, 0, 0, 0, 0]));
        let (inet, raw, stream) =
            (libc::AF_INET as u64, libc::SOCK_RAW as u64, libc::SOCK_STREAM as u64);
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
        let program = program(&[], None);
        for row in CALLS.iter().chain(OLD_CALLS).filter(|row| row.2 == [When::Always]) {
            assert_eq!(run(&program, row.0, [0; 6]), SECCOMP_RET_USER_NOTIF, "{}", row.0);
        }
        assert_eq!(run(&program, libc::SYS_close, [0; 6]), SECCOMP_RET_ALLOW);
        assert_eq!(run(&program, HIGHEST, [0; 6]), SECCOMP_RET_USER_NOTIF);
    }

    #[test]
    fn unknown_calls_are_looked_at() {
        let program = program(&[], None);
        for number in [HIGHEST + 1, 9999, 0x4000_0000] {
            assert_eq!(run(&program, number, [0; 6]), SECCOMP_RET_USER_NOTIF, "{number}");
        }
        assert_eq!(run(&program, -1, [0; 6]), SECCOMP_RET_ALLOW);
    }

    #[test]
    fn without_inherited_descriptors_reading_costs_nothing() {
        let program = program(&[], None);
        assert_eq!(run(&program, libc::SYS_read, [0; 6]), SECCOMP_RET_ALLOW);
        assert_eq!(run(&program, libc::SYS_write, [0; 6]), SECCOMP_RET_ALLOW);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn led_calls_pass_from_one_place() {
        let page = 0x2000_1234_5002;
        let program =
            program(&[], Some(Passes { instruction: page, own_ask: None, own_open: None }));
        for number in [libc::SYS_openat, libc::SYS_rt_sigaction] {
            assert_eq!(run_at(&program, number, [1; 6], page), SECCOMP_RET_ALLOW);
            for other in [0, page - 1, page & u64::from(u32::MAX), page + (1 << 32)] {
                assert_eq!(
                    run_at(&program, number, [1; 6], other),
                    SECCOMP_RET_USER_NOTIF,
                    "{other:x}"
                );
            }
        }
        assert_eq!(
            run_at(&program, libc::SYS_clone3, [0; 6], page + u64::from(VARIANT)),
            SECCOMP_RET_ALLOW
        );
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_loader_asks_for_its_descriptors_unseen() {
        let own_ask = Some(OwnCall { instruction: 0x2092a, path: 0x29c99 });
        let program = program(
            &[0, 7],
            Some(Passes { instruction: 0x2000_1234_5002, own_ask, own_open: None }),
        );
        let base = 0x7fc9_2026_0000;
        let (instruction, path) = (base + 0x2092a, base + 0x29c99);
        let looks = |arguments, instruction| {
            run_at(&program, libc::SYS_newfstatat, arguments, instruction) == SECCOMP_RET_USER_NOTIF
        };
        assert!(!looks([4, path, 0, 0x1000, 0, 0], instruction));
        for foreign in [0, 7] {
            assert!(looks([foreign, path, 0, 0x1000, 0, 0], instruction), "{foreign}");
        }
        assert!(
            looks([4, path, 0, 0, 0, 0], instruction)
                && looks([4, path, 0, 0x1100, 0, 0], instruction)
        );
        for other in [path + 1, path + (1 << 32), path ^ 0x1000, 0] {
            assert!(looks([4, other, 0, 0x1000, 0, 0], instruction), "{other:x}");
        }
        assert!(looks([4, path + 1, 0, 0x1000, 0, 0], instruction + 1), "elsewhere on its page");
        assert!(
            !looks([4, path + 0x1000, 0, 0x1000, 0, 0], instruction + 0x1000),
            "it lies somewhere else"
        );
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_loader_opens_its_cache_unseen() {
        let own_open = Some(OwnCall { instruction: 0x20b1d, path: 0x290b1 });
        let program = program(
            &[0, 7],
            Some(Passes { instruction: 0x2000_1234_5002, own_ask: None, own_open }),
        );
        let base = 0x7fc9_2026_0000;
        let (instruction, path, folder) = (base + 0x20b1d, base + 0x290b1, libc::AT_FDCWD as u64);
        let looks = |path, flags: i32, instruction| {
            let arguments = [folder, path, flags as u64, 0, 0, 0];
            run_at(&program, libc::SYS_openat, arguments, instruction) == SECCOMP_RET_USER_NOTIF
        };
        assert!(!looks(path, libc::O_CLOEXEC, instruction));
        for other in [path + 1, path + (1 << 32), path ^ 0x1000, 0] {
            assert!(looks(other, libc::O_CLOEXEC, instruction), "{other:x}");
        }
        for flags in [0, libc::O_CLOEXEC | libc::O_PATH, libc::O_CLOEXEC | libc::O_RDWR] {
            assert!(looks(path, flags, instruction), "{flags:o}");
        }
        assert!(looks(path + 1, libc::O_CLOEXEC, instruction + 1), "elsewhere on its page");
    }
}
