//! Functions of libraries that read what their arguments point to, and would find breakpoints in
//! code. Whatever is not here is taken for a function that keeps the address or calls it (`qsort`,
//! `pthread_create`, `signal`).

/// Names, and the arguments that are read, by their number.
const READERS: [(&[&str], &[usize]); 10] = [
    (
        &[
            "memcpy",
            "memmove",
            "mempcpy",
            "memccpy",
            "__memcpy_chk",
            "__memmove_chk",
            "__mempcpy_chk",
        ],
        &[1],
    ),
    (
        &[
            "write", "pwrite", "pwrite64", "send", "sendto", "strcpy", "strncpy", "stpcpy",
            "strcat", "strncat",
        ],
        &[1],
    ),
    (
        &[
            "fwrite",
            "fwrite_unlocked",
            "puts",
            "fputs",
            "strlen",
            "strnlen",
            "strdup",
            "strndup",
            "bcopy",
        ],
        &[0],
    ),
    (
        &[
            "memchr",
            "memrchr",
            "rawmemchr",
            "strchr",
            "strrchr",
            "index",
            "atoi",
            "strtol",
            "strtoul",
        ],
        &[0],
    ),
    (&["memcmp", "bcmp", "strcmp", "strncmp", "strcasecmp", "strncasecmp", "strstr"], &[0, 1]),
    (&["memmem"], &[0, 2]),
    // The place in a file that is the memory of a process.
    (&["pread", "pread64"], &[3]),
    (&["lseek", "lseek64", "fseek", "fseeko", "fseeko64"], &[1]),
    (&["ptrace"], &[2]),
    (&["syscall"], &[1, 2, 3, 4, 5]),
];

/// Those that read what a list says which an argument points to.
const GATHERERS: [&str; 9] = [
    "writev",
    "pwritev",
    "pwritev64",
    "pwritev2",
    "pwritev64v2",
    "vmsplice",
    "process_vm_readv",
    "sendmsg",
    "sendmmsg",
];

/// Parts of the names of functions that compute something of the bytes that they are given.
const COMPUTING: [&str; 19] = [
    "adler",
    "base64",
    "blake",
    "checksum",
    "cksum",
    "compress",
    "crc",
    "deflate",
    "digest",
    "hash_bytes",
    "hexdump",
    "hmac",
    "md5",
    "murmur",
    "sha1",
    "sha256",
    "sha512",
    "siphash",
    "xxh",
];

/// Methods of C++ strings and streams that copy characters: what is before their parameters, and
/// those.
const COPYING: [(&str, &str); 2] = [("basic_string", "EPKc"), ("ostream", "PKc")];

/// What a function of another module does with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    Nothing,
    /// What the arguments of these numbers point to.
    Arguments(&'static [usize]),
    /// What a list in memory says.
    Lists,
}

/// One of these is it. Others may be there from before, if there are no more arguments.
const FIRST: &[usize] = &[0, 1, 2];

pub fn reads(name: &[u8]) -> Reads {
    let Ok(name) = std::str::from_utf8(name) else { return Reads::Nothing };
    if let Some((_, arguments)) = READERS.iter().find(|(names, _)| names.contains(&name)) {
        return Reads::Arguments(arguments);
    }
    if GATHERERS.contains(&name) {
        return Reads::Lists;
    }
    if COPYING.iter().any(|(class, parameters)| name.contains(class) && name.contains(parameters)) {
        return Reads::Arguments(&[1]);
    }
    let lower = name.to_ascii_lowercase();
    let computes = COMPUTING.iter().any(|part| lower.contains(part));
    if computes { Reads::Arguments(FIRST) } else { Reads::Nothing }
}

/// Functions that copy: from the second argument to the first, as many bytes as the third says.
pub fn copies(name: &[u8]) -> bool {
    [&b"memcpy"[..], b"memmove", b"mempcpy", b"__memcpy_chk", b"__memmove_chk"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_told_by_their_names() {
        assert_eq!(reads(b"memcmp"), Reads::Arguments(&[0, 1]));
        assert_eq!(reads(b"SHA256_Update"), Reads::Arguments(FIRST));
        assert_eq!(reads(b"crc32"), Reads::Arguments(FIRST));
        assert_eq!(reads(b"writev"), Reads::Lists);
        for callback in
            [&b"qsort"[..], b"signal", b"pthread_create", b"atexit", b"g_hash_table_foreach"]
        {
            assert_eq!(reads(callback), Reads::Nothing);
        }
    }
}
