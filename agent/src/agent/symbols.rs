//! Finds the functions that the agent interposes: those of the same name in the libraries behind
//! it. `dlsym` would find them too, but not every C library has it, and it takes locks and memory.
//!
//! In: a name. Out: the address of the next function of that name, in the order in which the loader
//! has mapped the libraries.

use super::loader::{LinkMap, debug};
use core::ffi::c_void;
use core::ptr::{addr_of, null};

unsafe extern "C" {
    /// Our own dynamic section, by which the loader's entry for us is known.
    static _DYNAMIC: c_void;
}

core::arch::global_asm!(".hidden _DYNAMIC");

/// A symbol, as the ELF specification has it.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: u64,
}

/// The tables of a module that are needed to find a symbol.
struct Tables {
    base: usize,
    names: *const u8,
    symbols: *const Symbol,
    /// As GNU linkers make it; null if there is none.
    hashes: *const u32,
    versions: *const u16,
}

/// The function of this name in the first module behind our own that has one; 0 if there is none.
pub fn next(name: &[u8]) -> usize {
    // SAFETY: the list is the loader's, which adds modules to its end and takes none of the first
    // ones away.
    unsafe {
        if debug().is_null() {
            return 0;
        }
        let mut link = (*debug()).modules;
        while !link.is_null() && (*link).dynamic != addr_of!(_DYNAMIC) {
            link = (*link).next;
        }
        while !link.is_null() {
            link = (*link).next;
            let found = if link.is_null() { 0 } else { Tables::of(link).find(name) };
            if found != 0 {
                return found;
            }
        }
    }
    0
}

impl Tables {
    unsafe fn of(link: *const LinkMap) -> Tables {
        const STRTAB: usize = 5;
        const SYMTAB: usize = 6;
        const GNU_HASH: usize = 0x6fff_fef5;
        const VERSYM: usize = 0x6fff_fff0;
        // SAFETY: a dynamic section is a list of pairs that ends with a zero.
        unsafe {
            let base = (*link).base;
            let mut tables =
                Tables { base, names: null(), symbols: null(), hashes: null(), versions: null() };
            let mut entry = (*link).dynamic.cast::<[usize; 2]>();
            while !entry.is_null() && (*entry)[0] != 0 {
                let [tag, value] = *entry;
                // Loaders put addresses in the place of offsets, unless the section cannot be
                // written to.
                let address = if value < base { base + value } else { value };
                match tag {
                    STRTAB => tables.names = address as *const u8,
                    SYMTAB => tables.symbols = address as *const Symbol,
                    GNU_HASH => tables.hashes = address as *const u32,
                    VERSYM => tables.versions = address as *const u16,
                    _ => {}
                }
                entry = entry.add(1);
            }
            tables
        }
    }

    /// The address of a function; 0 if the module has none of this name.
    unsafe fn find(&self, name: &[u8]) -> usize {
        if self.hashes.is_null() || self.symbols.is_null() || self.names.is_null() {
            return 0;
        }
        let hash = name
            .iter()
            .fold(5381u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
        // SAFETY: the table has four numbers, a filter, the first symbol of each bucket, and the
        // hash of each symbol, of which the last of a bucket is odd.
        unsafe {
            let [buckets, first, filter] = [0, 1, 2].map(|index| *self.hashes.add(index) as usize);
            if buckets == 0 {
                return 0;
            }
            let starts = self.hashes.add(4 + 2 * filter);
            let hashes = starts.add(buckets);
            let mut index = *starts.add(hash as usize % buckets) as usize;
            while index >= first {
                let known = *hashes.add(index - first);
                if known | 1 == hash | 1 && self.is_function(index, name) {
                    return self.base + (*self.symbols.add(index)).value;
                }
                if known & 1 != 0 {
                    break;
                }
                index += 1;
            }
        }
        0
    }

    /// Whether a symbol is the function of a name that others get by default.
    unsafe fn is_function(&self, index: usize, name: &[u8]) -> bool {
        const FUNCTION: u8 = 2;
        const HIDDEN: u16 = 0x8000;
        // SAFETY: the index is that of a symbol, whose name ends with a NUL.
        unsafe {
            let symbol = &*self.symbols.add(index);
            let text = self.names.add(symbol.name as usize);
            let is_old = !self.versions.is_null() && *self.versions.add(index) & HIDDEN != 0;
            let is_named =
                (0..name.len()).all(|at| *text.add(at) == name[at]) && *text.add(name.len()) == 0;
            is_named && !is_old && symbol.section != 0 && symbol.info & 0xf == FUNCTION
        }
    }
}
