//! Descriptors that a test is given: another standard input, files at a position, what it hands on.

use super::{Bench, Ran};
use crate::workshop::{TASTING, tool};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use tasting::model::Verdict;

/// Runs a test with this text in a pipe at its standard input.
pub(super) fn with_pipe(bench: &Bench, words: &[&str], text: &str) -> Ran {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(text.as_bytes()).unwrap();
    drop(writer);
    bench.finish(bench.tasting(words).env_remove("MAKELEVEL").stdin(reader))
}

#[test]
fn standard_input_by_another_descriptor_is_not_kept() {
    let bench = Bench::new();
    let scripts = [
        "exec {fd}<&0; read -r line <&$fd; echo $line",
        "exec {fd}<&0; read -r -u $fd line; echo $line",
        "exec 7<&0; read -r line <&7; echo $line",
    ];
    for script in scripts {
        for text in ["one\n", "two\n"] {
            let ran = with_pipe(&bench, &["bash", "-c", script], text);
            assert_eq!(
                (ran.text().as_str(), ran.decision.decision),
                (text, Verdict::Executed),
                "{script}"
            );
            ran.not_kept("standard input");
        }
    }
    // A shell that redirects puts it aside and gets it back, which is no use of it.
    bench.write("data", "x\n");
    for shell in ["bash", "sh"] {
        let words = [shell, "-c", "{ read -r line; } < data; echo $line; { echo a; } < data"];
        assert_eq!(with_pipe(&bench, &words, "one\n").decision.decision, Verdict::Executed);
        assert_eq!(with_pipe(&bench, &words, "two\n").decision.decision, Verdict::Reused);
    }
}

const DUPLICATES: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
static int handed_over(int fd) {
    int pair[2], got;
    char byte = 0, control[CMSG_SPACE(sizeof(int))];
    struct iovec io = {&byte, 1};
    struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    if (sendmsg(pair[0], &message, 0) != 1 || recvmsg(pair[1], &message, 0) != 1) return -1;
    memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof got);
    return got;
}
int main(int count, char **words) {
    char text[99] = "";
    int fd = count > 1 ? handed_over(0) : fcntl(0, F_DUPFD, 200);
    return read(fd, text, 98) < 0 || puts(text) < 0;
}
"#;

#[test]
fn standard_input_handed_on_is_refused() {
    let bench = Bench::with(DUPLICATES);
    for words in [&["./t"][..], &["./t", "socket"]] {
        for text in ["one", "two"] {
            let ran = with_pipe(&bench, words, text);
            assert_eq!(
                (ran.text(), ran.decision.decision),
                (format!("{text}\n"), Verdict::Executed)
            );
            ran.not_kept("standard input");
        }
    }
}

#[test]
fn size_and_position_of_an_inherited_file_count() {
    let bench = Bench::new();
    let python = tool("python3");
    let file = bench.write("log", "0123456789");
    let run = |code: &str| {
        let line = format!(
            "exec 5>>{}; exec {TASTING} run -- {} -c \"{code}\"",
            file.display(),
            python.display()
        );
        bench.finish(bench.command("bash").args(["-c", &line]))
    };
    for code in ["import os; print(os.fstat(5).st_size)", "import os; print(os.lseek(5, 0, 2))"] {
        run(code).not_kept("descriptor 5");
    }
    assert_eq!(run("print(1)").decision.decision, Verdict::Executed);
    assert_eq!(run("print(1)").decision.decision, Verdict::Reused, "who does not use it is reused");
}

#[test]
fn an_input_that_is_read_from_its_middle() {
    let bench = Bench::new();
    let file = bench.write("input", "abcdef");
    let from = |position: u64| {
        let mut input = File::open(&file).unwrap();
        input.seek(SeekFrom::Start(position)).unwrap();
        let ran =
            bench.finish(bench.tasting(&["bash", "-c", "exec {fd}<&0; cat <&$fd"]).stdin(input));
        (ran.text(), ran.decision.decision)
    };
    assert_eq!(from(1), ("bcdef".to_owned(), Verdict::Executed));
    assert_eq!(from(1), ("bcdef".to_owned(), Verdict::Reused));
    assert_eq!(from(2), ("cdef".to_owned(), Verdict::Executed));
}

#[test]
fn a_descriptor_that_was_not_inherited_before() {
    let bench = Bench::new();
    bench.write("file", "seven\n");
    let script = "cat <&7 2>/dev/null || echo none";
    let run = |redirection: &str| {
        let line = format!("exec {TASTING} run -- sh -c '{script}' {redirection}");
        let ran = bench.finish(bench.command("sh").args(["-c", &line]));
        (ran.text(), ran.decision.decision)
    };
    assert_eq!(run(""), ("none\n".to_owned(), Verdict::Executed));
    assert_eq!(run("7< file"), ("seven\n".to_owned(), Verdict::Executed));
    assert_eq!(run(""), ("none\n".to_owned(), Verdict::Reused));
}
