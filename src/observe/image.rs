//! The image of a module's code, which agents map in place of the original. Functions start with a
//! call of the gate (see the agent's `gate.rs`) and are filled with breakpoints behind it, so that
//! no way into them goes unnoticed. This file also makes the pages on which those calls land.
//! Functions that cannot have a gate (shorter than a call, or entered by jumps) keep their code and
//! count as executed: noting them would take a signal.
//!
//! In: a binary and the positions of its functions. Out: the image, written to shared memory; what
//! the agent has to know of it.

use super::arch;
use crate::model::{Code, Function};
use crate::process::sys::Memory;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use tasting_agent::protocol::{self, FRONT_ABOVE, FRONT_BELOW, SAMPLES};

/// What an agent has to know of an image.
pub struct Image {
    /// Some of the code that was there: where, and what.
    pub samples: [(u64, u64); SAMPLES],
    /// How much of the code belongs to each function, with what fills the gap behind it if its gate
    /// needs that.
    pub sizes: Vec<u32>,
    /// Which functions count as executed, because they are not watched: a byte each.
    pub executed: Vec<u8>,
    /// The pages of the landing area; none if no function has a gate.
    pub landing: Vec<u8>,
    /// How far from the code the landing area is.
    pub distance: u64,
}

const BREAKPOINT: &[u8] = &protocol::BREAKPOINT.to_le_bytes();

/// The front of a function with a gate, and how far from the code its call leads, in whole pages.
const BELOW: ([u8; GATE], i64) = (FRONT_BELOW, -0x3333_4000);
const ABOVE: ([u8; GATE], i64) = (FRONT_ABOVE, 0x60cc_c000);
const GATE: usize = FRONT_BELOW.len();
/// Where the call at the very start of the code lands, from the start of the landing area on: the
/// pages of the area lie a whole number of pages below those of the code.
const FIRST_LANDING: u64 = 0xcd1;

const PAGE: u64 = protocol::PAGE as u64;
const CHUNK: u64 = protocol::CHUNK as u64;
const JUMP: u64 = protocol::JUMP as u64;
/// From so many bytes to so many there is a jump to that one.
const BLOCK: u64 = 512;
const NOP: u8 = 0x90;

/// Writes the image of a module's code, from `image` on.
pub fn write(memory: &Memory, image: u64, file: &File, code: &Code) -> io::Result<Image> {
    /// As much as the processor's cache holds.
    const CHUNK: u64 = 1 << 17;
    let has_gates = arch::HAS_GATES;
    let (front, distance) = if is_placed_when_loaded(file)? { BELOW } else { ABOVE };
    let sample_at = |number: usize| ((code.length - 8) * number as u64 / (SAMPLES as u64 - 1)) & !7;
    let mut samples = Vec::with_capacity(SAMPLES);
    let mut sizes: Vec<u32> = code.functions.iter().map(|function| function.size).collect();
    let mut executed = vec![0; code.functions.len()];
    let mut functions = code.functions.iter().enumerate().peekable();
    let mut buffer = vec![0; CHUNK.min(code.length) as usize];
    for start in (0..code.length).step_by(CHUNK as usize) {
        let end = (start + CHUNK).min(code.length);
        let chunk = &mut buffer[..(end - start) as usize];
        read_at(file, chunk, code.offset + start)?;
        while samples.len() < SAMPLES && sample_at(samples.len()) < end {
            let at = sample_at(samples.len());
            let bytes: [u8; 8] =
                chunk[(at - start) as usize..][..8].try_into().map_err(io::Error::other)?;
            samples.push((at, u64::from_ne_bytes(bytes)));
        }
        while let Some((number, function)) = functions.peek() {
            let (from, to) = (u64::from(function.place) - code.start, function.end() - code.start);
            if from >= end {
                break;
            }
            let next = code
                .functions
                .get(number + 1)
                .map_or(code.length, |next| u64::from(next.place) - code.start);
            let here = &mut chunk[from.saturating_sub(start) as usize..];
            let gate =
                (has_gates && from >= start).then(|| gate(function, from, next, here)).flatten();
            if has_gates && from >= start && gate.is_none() {
                executed[*number] = 1;
            }
            if executed[*number] == 0 {
                let part = here.len().min((to.min(end) - from.max(start)) as usize);
                fill_with_breakpoints(&mut here[..part]);
            }
            if let Some(size) = gate {
                here[..GATE].copy_from_slice(&front);
                sizes[*number] = size;
            }
            if to > end {
                // The rest of it is in the next chunk.
                break;
            }
            functions.next();
        }
        memory.write_at(chunk, image + start)?;
    }
    let landing = if has_gates { landing(code.length) } else { Vec::new() };
    let samples = samples.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(Image { samples, sizes, executed, landing, distance: distance as u64 })
}

/// One byte after the other would be a call each, for megabytes.
fn fill_with_breakpoints(code: &mut [u8]) {
    match BREAKPOINT {
        [byte] => code.fill(*byte),
        unit => code.chunks_exact_mut(unit.len()).for_each(|at| at.copy_from_slice(unit)),
    }
}

/// Whether a binary can be loaded anywhere. Below one that lies at the low end of the memory there
/// is nothing to land on.
fn is_placed_when_loaded(file: &File) -> io::Result<bool> {
    const TYPE: u64 = 16;
    const ET_DYN: [u8; 2] = [3, 0];
    let mut kind = [0; 2];
    read_at(file, &mut kind, TYPE)?;
    Ok(kind == ET_DYN)
}

/// Whether a function can have a gate: how much of the code is the function's then. In: the
/// function, where it starts and where the next one does; the code from there on, up to the end of
/// what was read.
fn gate(function: &Function, from: u64, next: u64, code: &[u8]) -> Option<u32> {
    let (size, least) = (function.size as usize, GATE);
    let is_long = size >= least;
    // What is behind a short one may be used if it does nothing and belongs to nobody.
    let has_room = || {
        from.is_multiple_of(16)
            && from + least as u64 <= next
            && code.len() >= 16
            && is_filler(&code[size..16])
    };
    let is_possible =
        function.is_called && code.len() >= least && lands(from) && (is_long || has_room());
    is_possible.then(|| size.max(least) as u32)
}

/// Whether the call of a function that starts there does not land in the middle of a jump.
fn lands(from: u64) -> bool {
    let at = (from + FIRST_LANDING) % CHUNK;
    if at < PAGE { at <= PAGE - JUMP } else { at % BLOCK <= BLOCK - GATE as u64 }
}

/// Whether code starts with what assemblers and linkers fill gaps with: breakpoints, or
/// instructions that do nothing.
fn is_filler(code: &[u8]) -> bool {
    let prefixes = code.iter().take_while(|byte| matches!(byte, 0x66 | 0x2e)).count();
    let rest = &code[prefixes..];
    rest.starts_with(&[0x0f, 0x1f])
        || code.iter().all(|byte| *byte == 0xcc)
        || code.iter().all(|byte| *byte == NOP)
        || rest == [NOP]
}

/// The pages of a landing area for code of a length.
fn landing(length: u64) -> Vec<u8> {
    let mut landing = vec![NOP; CHUNK.min(length + PAGE) as usize];
    for end in (PAGE + BLOCK..=landing.len() as u64).step_by(BLOCK as usize) {
        let distance = (PAGE - JUMP) as i32 - end as i32;
        let jump = &mut landing[end as usize - 5..end as usize];
        jump[0] = 0xe9;
        jump[1..].copy_from_slice(&distance.to_le_bytes());
    }
    landing
}

/// Reads as much as there is. Behind that are zeros.
fn read_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.read_at(buffer, offset)? {
            0 => {
                buffer.fill(0);
                break;
            }
            read => {
                buffer = &mut buffer[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u64 = 3 << 16;
    /// The last one goes across the parts in which the image is written.
    const FUNCTIONS: [Function; 4] = [
        Function { place: 16, size: 4, is_called: true },
        Function { place: 64, size: 8, is_called: true },
        Function { place: 72, size: 16, is_called: false },
        Function { place: (1 << 17) - 8, size: 24, is_called: true },
    ];

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn only_gates_are_replaced_by_breakpoints() {
        let memory = Memory::new(c"image").unwrap();
        let path = std::env::current_exe().unwrap();
        let code = Code { start: 0, length: LENGTH, offset: 0, functions: FUNCTIONS.to_vec() };
        let image = write(&memory, 0, &File::open(&path).unwrap(), &code).unwrap();
        assert_eq!(image.sizes, [4, 8, 16, 24]);
        assert_eq!(image.executed, [1, 0, 1, 0], "too short; entered by jumps");
        let original = std::fs::read(path).unwrap();
        let content = memory.content().unwrap();
        for (at, (now, before)) in content.iter().zip(&original).enumerate() {
            let is_in = |function: &&Function| {
                (function.place.into()..function.end()).contains(&(at as u64))
            };
            match FUNCTIONS.iter().find(is_in) {
                Some(function)
                    if [64, (1 << 17) - 8].contains(&function.place)
                        && at - (function.place as usize) < 5 =>
                {
                    assert_eq!(*now, BELOW.0[at - function.place as usize], "{at}");
                }
                Some(function) if [64, (1 << 17) - 8].contains(&function.place) => {
                    assert_eq!(*now, BREAKPOINT[0], "{at}");
                }
                _ => assert_eq!(now, before, "{at}"),
            }
        }
        for (at, bytes) in image.samples {
            assert_eq!(bytes.to_ne_bytes(), original[at as usize..][..8]);
        }
    }

    /// Every place that a gate may call leads to the jump of its chunk, by instructions that do
    /// nothing and one jump.
    #[test]
    fn every_landing_leads_to_the_first_page() {
        let landing = landing(CHUNK * 2);
        for from in 0..CHUNK * 2 {
            let mut at = (from + FIRST_LANDING) % CHUNK;
            if !lands(from) || at < PAGE {
                continue;
            }
            while landing[at as usize] == NOP {
                at += 1;
            }
            assert_eq!(landing[at as usize], 0xe9);
            let distance = i32::from_le_bytes(landing[at as usize + 1..][..4].try_into().unwrap());
            assert_eq!(at as i64 + 5 + i64::from(distance), (PAGE - JUMP) as i64, "{from}");
        }
        let aligned = (0..1 << 20).step_by(16);
        assert!(aligned.filter(|from| !lands(*from)).count() <= 8, "functions of optimised code");
    }

    #[test]
    fn short_functions_use_the_padding_behind_them() {
        let short = Function { place: 0, size: 3, is_called: true };
        let code = |rest: &[u8]| [&[0x31, 0xc0, 0xc3], rest, &[0x90; 16]].concat();
        for filler in
            [&[0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0][..], &[0x0f, 0x1f, 0], &[0x90]]
        {
            assert_eq!(gate(&short, 0, 16, &code(filler)), Some(5), "{filler:x?}");
        }
        assert_eq!(gate(&short, 0, 16, &[0xcc; 32]), Some(5));
        assert_eq!(gate(&short, 0, 4, &code(&[0x90])), None, "the next one is too near");
        assert_eq!(
            gate(&short, 3, 32, &code(&[0x90])),
            None,
            "it is not known whose bytes those are"
        );
        assert_eq!(gate(&short, 0, 16, &code(&[0x55, 0x48])), None);
        assert_eq!(gate(&Function { is_called: false, ..short }, 0, 16, &code(&[0x90])), None);
    }
}
