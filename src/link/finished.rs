//! The binary that the linker has made. In: its path. Out: its tables, symbols and digest. They are
//! computed once, by the first thread that needs them; others wait for it.

use super::input::SymbolAddresses;
use super::symbols::FinalSymbols;
use crate::elf::binary::{self, Binary};
use crate::model::Hash;
use crate::process::sys::{self, Mapped};
use std::path::Path;
use std::sync::OnceLock;

/// The content of the binary's file, or why it cannot be read.
pub type Content = OnceLock<Result<Mapped, String>>;

/// A binary, to be looked at when the linker has ended.
pub struct Finished<'a> {
    path: &'a Path,
    content: &'a Content,
    binary: OnceLock<Result<Binary<'a>, String>>,
    symbols: OnceLock<FinalSymbols>,
    digest: OnceLock<Hash>,
}

impl<'a> Finished<'a> {
    pub fn new(path: &'a Path, content: &'a Content) -> Self {
        Finished {
            path,
            content,
            binary: OnceLock::new(),
            symbols: OnceLock::new(),
            digest: OnceLock::new(),
        }
    }

    /// Looks at everything.
    pub fn look(&self) {
        self.symbols();
        self.digest();
    }

    /// The binary, or why it cannot be read.
    pub fn binary(&self) -> Result<&Binary<'a>, &String> {
        let read = || sys::map(self.path).map_err(|error| error.to_string());
        let parse = || {
            let content = self.content.get_or_init(read).as_ref().map_err(String::clone)?;
            Binary::parse(content).map_err(|error| error.to_string())
        };
        self.binary.get_or_init(parse).as_ref()
    }

    /// Who made it, as they tell themselves.
    pub fn producers(&self) -> Vec<&[u8]> {
        let content = self.content.get().and_then(|content| content.as_ref().ok());
        content.map(|content| binary::producers(content)).unwrap_or_default()
    }

    /// The binary's symbols; none, if it cannot be read.
    pub fn symbols(&self) -> &FinalSymbols {
        self.symbols.get_or_init(|| self.binary().map(FinalSymbols::new).unwrap_or_default())
    }

    /// The digest of what is loaded.
    pub fn digest(&self) -> Hash {
        *self.digest.get_or_init(|| self.binary().map(Binary::loaded_digest).unwrap_or_default())
    }
}

impl SymbolAddresses for Finished<'_> {
    fn address(&self, name: Hash) -> Option<u64> {
        self.symbols().address(name)
    }
}
