//! What starting a program brings with it: interpreters of scripts and of dynamic executables,
//! which the kernel opens by itself, and privileges, which a watched program does not get.
//!
//! In: an executable file. Out: what it is.

use crate::process::sys;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// What kind of program a file is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The program that the kernel starts in its place, or loads it with.
    pub interpreter: Option<Vec<u8>>,
    /// It is an ELF file of this machine's word size, or names an interpreter.
    pub known: bool,
    /// It is an ELF file for a processor of 32 bits.
    pub is_32_bit: bool,
}

/// As much as the kernel reads of a script's first line.
const FIRST_LINE: usize = 256;

const PT_INTERP: u32 = 3;

/// Looks at the front of a program.
pub fn head(path: &Path) -> io::Result<Head> {
    let mut file = File::open(path)?;
    let mut front = Vec::with_capacity(FIRST_LINE);
    file.by_ref().take(FIRST_LINE as u64).read_to_end(&mut front)?;
    if let Some(line) = front.strip_prefix(b"#!") {
        return Ok(Head { interpreter: script_interpreter(line), known: true, is_32_bit: false });
    }
    match front.strip_prefix(b"\x7fELF") {
        Some([1, ..]) => Ok(Head { is_32_bit: true, known: true, interpreter: None }),
        Some([2, ..]) => {
            Ok(Head { interpreter: loader(&file, &front), known: true, is_32_bit: false })
        }
        _ => Ok(Head::default()),
    }
}

/// The first word behind `#!`.
fn script_interpreter(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.split(|&byte| byte == b'\n').next()?;
    let word = line.split(|byte| matches!(byte, b' ' | b'\t' | 0)).find(|word| !word.is_empty())?;
    Some(word.to_owned())
}

/// The dynamic loader that a 64-bit ELF file asks for.
fn loader(file: &File, front: &[u8]) -> Option<Vec<u8>> {
    let table = number(front, 32, 8)?;
    let (size, count) = (number(front, 54, 2)?, number(front, 56, 2)?);
    for index in 0..count {
        let mut header = [0; 56];
        file.read_exact_at(&mut header, table.checked_add(index * size)?).ok()?;
        if number(&header, 0, 4)? == u64::from(PT_INTERP) {
            let mut name =
                vec![
                    0;
                    usize::try_from(number(&header, 32, 8)?).ok().filter(|&size| size <= 4096)?
                ];
            file.read_exact_at(&mut name, number(&header, 8, 8)?).ok()?;
            name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
            return Some(name);
        }
    }
    None
}

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut number = [0; 8];
    number[..size].copy_from_slice(bytes.get(at..at + size)?);
    Some(u64::from_le_bytes(number))
}

/// Whether running the file gives this user privileges that it does not have.
pub fn gives_privileges(path: &Path, found: &Metadata) -> bool {
    let mode = found.mode();
    let sets_user = mode & libc::S_ISUID != 0 && found.uid() != sys::user();
    let sets_group =
        mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0 && found.gid() != sys::group();
    sets_user || sets_group || (sys::user() != 0 && super::kernel::has_capabilities(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        for (text, expected) in
            [("#!/bin/sh\n", "/bin/sh"), ("#! /usr/bin/env  perl -w\n", "/usr/bin/env")]
        {
            std::fs::write(&path, text).unwrap();
            assert_eq!(head(&path).unwrap().interpreter, Some(expected.into()));
        }
        std::fs::write(&path, "echo hello\n").unwrap();
        assert_eq!(head(&path).unwrap(), Head::default());
        let own = head(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.known && String::from_utf8(own.interpreter.unwrap()).unwrap().contains("ld"));
    }
}
