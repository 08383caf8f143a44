//! Colours, for terminals only.

/// What to write before and after a piece of text; all empty where there is no colour.
#[derive(Clone, Copy, Default)]
pub struct Style {
    pub bold: &'static str,
    pub dim: &'static str,
    pub red: &'static str,
    pub green: &'static str,
    pub yellow: &'static str,
    pub plain: &'static str,
}

impl Style {
    pub fn new(colour: bool) -> Self {
        if !colour {
            return Style::default();
        }
        Style {
            bold: "\x1b[1m",
            dim: "\x1b[2m",
            red: "\x1b[31m",
            green: "\x1b[32m",
            yellow: "\x1b[33m",
            plain: "\x1b[0m",
        }
    }
}
