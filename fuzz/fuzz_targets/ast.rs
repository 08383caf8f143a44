//! See `readers::ast`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tasting_fuzz::ast(bytes));
