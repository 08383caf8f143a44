//! Names as the programmer wrote them.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// A readable form beyond this helps nobody. A name of 300 letters can have one of many gigabytes:
/// `b<b<…>, b<…>>` refers back to parts of itself.
const LONGEST: usize = 1 << 16;

/// The readable form of a symbol's name; the name itself where there is none.
pub fn demangle(name: &str) -> Cow<'_, str> {
    let mut readable = Bounded(String::new());
    let done = if let Ok(rust) = rustc_demangle::try_demangle(name) {
        write!(readable, "{rust:#}").is_ok()
    } else {
        name.starts_with("_Z") && demangle_cpp(name, &mut readable).is_some()
    };
    if done { Cow::Owned(readable.0) } else { Cow::Borrowed(name) }
}

fn demangle_cpp(name: &str, out: &mut Bounded) -> Option<()> {
    cpp_demangle::Symbol::new(name)
        .ok()?
        .structured_demangle(out, &cpp_demangle::DemangleOptions::default())
        .ok()
}

/// Text up to a certain length.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn readable_names() {
        assert_eq!(demangle("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(demangle("main"), "main");
        assert_eq!(
            demangle("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE"),
            "core::fmt::Formatter::write_str"
        );
    }

    #[test]
    fn a_name_that_doubles_stays_as_it_is() {
        assert_eq!(demangle("_Z1f1a1bIS_S_ES0_IS1_S1_E"), "f(a, b<a, a>, b<b<a, a>, b<a, a> >)");
        let name = include_str!("../../fixtures/damaged/name-that-doubles.txt");
        assert_eq!(demangle(name), name);
    }
}
