//! Which parts of a binary belong to the runtime of a language. In: the file that a part was linked
//! from, as the linker names it.

/// Archives and objects of the runtime. They use the headers of the program to unwind the stack, to
/// relocate the program, to find variables of threads or debug information: what they find there
/// are the places of things that count by themselves.
const RUNTIME: [&str; 9] = [
    "libc.a",
    "libgcc.a",
    "libgcc_eh.a",
    "libunwind.a",
    "libstdc++.a",
    "libsupc++.a",
    "rcrt1.o",
    "crt1.o",
    "crtbeginT.o",
];
const SANITIZERS: &str = "libclang_rt.";

/// Whether an object, or the archive that it is a member of, is part of the runtime.
pub fn is_of_runtime(label: &str) -> bool {
    let file = label.split('(').next().unwrap_or(label);
    let name = file.rsplit('/').next().unwrap_or(file);
    let is_of_rust = name.starts_with("libstd-") && name.ends_with(".rlib");
    RUNTIME.contains(&name) || name.starts_with(SANITIZERS) || is_of_rust
}

/// Whether an object was made by the Rust compiler.
pub fn is_of_rust(label: &str) -> bool {
    [".rlib(", ".rcgu.o"].iter().any(|mark| label.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_is_told_by_its_files() {
        assert!(is_of_runtime(
            "/usr/lib/gcc/x86_64-linux-gnu/12/libgcc_eh.a(unwind-dw2-fde-dip.o)"
        ));
        assert!(is_of_runtime("/usr/lib/x86_64-linux-gnu/libc.a(libc-start.o)"));
        assert!(!is_of_runtime("main.o"));
        assert!(!is_of_runtime("out/libmine.a(libc.a.o)"));
    }

    #[test]
    fn objects_of_rust_are_told_by_their_names() {
        assert!(is_of_rust("target/debug/deps/it-1.2bxwm.rcgu.o"));
        assert!(is_of_rust("target/debug/deps/liba-1.rlib(a.o)"));
        assert!(!is_of_rust("main.o"));
    }
}
