//! Names as the programmer wrote them.

use std::borrow::Cow;

/// The readable form of a symbol's name; the name itself where there is none.
pub fn demangle(name: &str) -> Cow<'_, str> {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return Cow::Owned(format!("{rust:#}"));
    }
    let readable = name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name).ok()?.demangle().ok()).flatten();
    readable.map_or(Cow::Borrowed(name), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn readable_names() {
        assert_eq!(demangle("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE"), "core::fmt::Formatter::write_str");
    }
}
