//! What makes a run impossible to reuse: the network, other people's processes, and what cannot be
//! watched.

use super::{build, see, see_c, see_shell};
use crate::workshop::Workshop;
use std::os::unix::net::UnixListener;

const CONNECTS: &str = r#"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
/* Sends nothing: connecting a datagram socket only notes the address. */
int main(int count, char **arguments) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
    inet_pton(AF_INET, arguments[1], &to.sin_addr);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    return connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && count < 2;
}
"#;

#[test]
fn other_machines_are_refused() {
    let shop = Workshop::new();
    let seen = see_c(&shop, CONNECTS, &["192.0.2.1"]);
    assert!(seen.refused("192.0.2.1: is on the network"));
    let seen = see_c(&shop, CONNECTS, &["127.0.0.1"]);
    assert!(seen.refused("port 9"), "a port of this machine where somebody else may listen");
}

const TALKS: &str = r#"
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
static int talk(int kind, struct sockaddr *to, socklen_t size, int server) {
    pid_t child = fork();
    char text[8] = "";
    if (child == 0) {
        int fd = socket(to->sa_family, kind, 0);
        if (connect(fd, to, size)) _exit(1);
        _exit(write(fd, "hello", 5) != 5);
    }
    int fd = kind == SOCK_STREAM ? accept(server, 0, 0) : server, status;
    int bad = fd < 0 || read(fd, text, 5) != 5;
    return waitpid(child, &status, 0) != child || status || bad || strcmp(text, "hello");
}
static int internet(int kind) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof to;
    int server = socket(AF_INET, kind, 0);
    if (bind(server, (struct sockaddr *)&to, size) || (kind == SOCK_STREAM && listen(server, 5))) return 1;
    if (getsockname(server, (struct sockaddr *)&to, &size)) return 1;
    return talk(kind, (struct sockaddr *)&to, size, server);
}
static int local(const char *name) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    strcpy(to.sun_path + !*name, name + !*name);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(server, (struct sockaddr *)&to, sizeof to) || listen(server, 5)) return 1;
    return talk(SOCK_STREAM, (struct sockaddr *)&to, sizeof to, server);
}
int main(void) {
    if (internet(SOCK_STREAM)) return 1;
    if (internet(SOCK_DGRAM)) return 2;
    if (local("socket")) return 3;
    if (local("\0watched-test-name")) return 4;
    return unlink("socket");
}
"#;

#[test]
fn a_test_may_talk_to_itself() {
    let shop = Workshop::new();
    let seen = see_c(&shop, TALKS, &[]);
    assert!(seen.is_fine());
}

const CALLS_PATH: &str = r#"
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
int main(int count, char **arguments) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    strcpy(to.sun_path, arguments[1]);
    connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&to, sizeof to);
    return 0;
}
"#;

#[test]
fn sockets_and_pipes_of_others_are_refused() {
    let shop = Workshop::new();
    let _server = UnixListener::bind(shop.path("socket")).unwrap();
    let seen = see_c(&shop, CALLS_PATH, &["socket"]);
    assert!(seen.refused("uses a socket from outside"));
    let seen = see_c(&shop, CALLS_PATH, &["none"]);
    assert!(seen.is_fine() && seen.absent("none"));
    let own = see_shell(&shop, "mkfifo pipe; echo x > pipe & cat pipe; wait; rm pipe");
    assert!(own.is_fine());
    assert!(see_shell(&shop, "mkfifo left").is_fine());
    assert!(see_shell(&shop, "exec 3<>left; exec 3>&-").refused("uses a named pipe from outside"));
}

/// Each line: a program's statements, and the words of its refusal; nothing if it can be reused.
#[rustfmt::skip]
const CALLS: &[(&str, &str)] = &[
    ("syscall(SYS_io_uring_setup, 1, 0);", "io_uring"),
    ("unshare(CLONE_NEWUSER | CLONE_NEWNS);", "changes what paths mean"),
    ("syscall(SYS_mount, 0, 0, 0, 0, 0);", "changes what paths mean"),
    ("if (chroot(\"nowhere\")) {}", "changes what paths mean"),
    ("syscall(SYS_open_by_handle_at, -1, 0, 0);", "by handles"),
    ("socket(AF_PACKET, SOCK_DGRAM, 0);", "not watched (family 17)"),
    ("socket(AF_NETLINK, SOCK_RAW, 15);", "not watched (family 16)"),
    ("socket(AF_NETLINK, SOCK_RAW, 0); socket(AF_INET, SOCK_STREAM, 0);", ""),
    ("struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr.s6_addr = {0x20, 1, 0xd, 0xb8}};\
      struct msghdr message = {.msg_name = &to, .msg_namelen = sizeof to}; sendmsg(-1, &message, 0);", "2001:db8::"),
    ("struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = 0x010200c0};\
      sendto(-1, \"\", 0, 0, (struct sockaddr *)&to, sizeof to);", "192.0.2.1"),
    ("shmget(0x7a57e123, 100, 0600);", "shared with processes outside"),
    ("int id = shmget(0x7a57e124, 100, IPC_CREAT | 0600); shmget(0x7a57e124, 100, 0); shmctl(id, IPC_RMID, 0);", ""),
    ("shmctl(shmget(IPC_PRIVATE, 100, 0600), IPC_RMID, 0);", ""),
    ("syscall(SYS_mq_open, \"watched\", 0, 0, 0);", "message queue"),
    ("ptrace(PTRACE_SEIZE, getppid(), 0, 0); if (0)", "not its own"),
    ("int child = fork(); if (!child) { pause(); _exit(0); } ptrace(PTRACE_SEIZE, child, 0, 0); kill(child, 9); wait(0);", ""),
    ("char *none[] = {0}; int fd = memfd_create(\"x\", 0); write(fd, \"#!/bin/true\", 11); fexecve(fd, none, none);", "no name"),
    ("kill(getppid(), SIGCONT);", "sends signals to a process that is not its own"),
    ("kill(-1, 0);", "looks into a process"),
    ("raise(SIGCONT); kill(0, SIGCONT); signal(SIGTERM, SIG_IGN); kill(getpid(), SIGTERM);", ""),
    ("int child = fork(); if (!child) { pause(); _exit(0); } kill(child, SIGKILL); wait(0);", ""),
    ("int ends[2]; pipe(ends); fcntl(ends[0], F_SETOWN, getppid());", "sends signals to a process that is not its own"),
    ("int ends[2]; pipe(ends); struct f_owner_ex to = {F_OWNER_PID, getppid()}; fcntl(ends[0], F_SETOWN_EX, &to);",
     "sends signals to a process that is not its own"),
    ("int ends[2]; pipe(ends); int to = getppid(); ioctl(ends[0], FIOSETOWN, &to);",
     "sends signals to a process that is not its own"),
    ("int ends[2]; pipe(ends); fcntl(ends[0], F_SETOWN, getpid()); fcntl(ends[0], F_SETOWN, 0);", ""),
    ("setuid(getuid()); setresgid(-1, getgid(), -1);", ""),
    ("setuid(12345);", "another user"),
    ("syscall(SYS_keyctl, 0, 0);", "keyrings"),
    ("prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); struct sock_filter allow = {6, 0, 0, 0x7fff0000};\
      struct sock_fprog program = {1, &allow}; prctl(PR_SET_SECCOMP, 2, &program);", ""),
    ("prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); struct sock_filter allow = {6, 0, 0, 0x7fff0000};\
      struct sock_fprog program = {1, &allow}; syscall(SYS_seccomp, 1, 8, &program);", "below another watcher"),
    ("syscall(600);", "makes system call 600, which is unknown"),
];

const HEADERS: &str = "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <asm/ioctls.h>\n#include <linux/filter.h>\n#include <netinet/in.h>\n#include <sched.h>\n#include <signal.h>\n\
    #include <sys/ioctl.h>\n#include <sys/ipc.h>\n#include <sys/mman.h>\n#include <sys/prctl.h>\n#include <sys/ptrace.h>\n#include <sys/shm.h>\n\
    #include <sys/socket.h>\n#include <sys/syscall.h>\n#include <sys/wait.h>\n#include <unistd.h>\n";

#[test]
fn unwatchable_programs_are_refused() {
    let shop = Workshop::new();
    let cases = CALLS
        .iter()
        .enumerate()
        .map(|(index, (code, _))| format!("case {index}: {{ {code} break; }}\n"));
    let cases: String = cases.collect();
    let source = format!(
        "{HEADERS}#include <stdlib.h>\nint main(int count, char **arguments) {{ switch (atoi(arguments[1])) {{ {cases} }} return 0; }}"
    );
    let program = build(&shop, "cc", &source, &["-w"]);
    for (index, (code, words)) in CALLS.iter().enumerate() {
        let mut command = shop.command(&program);
        command.arg(index.to_string());
        let seen = see(&shop, command);
        match words.is_empty() {
            true => assert!(seen.is_fine(), "{code}"),
            false => assert!(seen.refused(words), "{code}: {:?}", seen.watched.refusals),
        }
    }
}

#[test]
fn a_second_listener_below_ours_disturbs() {
    let shop = Workshop::new();
    let source = format!(
        "{HEADERS}int main(void) {{ prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);\
        struct sock_filter trace = {{6, 0, 0, 0x7ff00000}}; struct sock_fprog program = {{1, &trace}};\
        return prctl(PR_SET_SECCOMP, 2, &program); }}"
    );
    let seen = see_c(&shop, &source, &[]);
    assert!(seen.watched.disturbed);
}

#[test]
fn programs_with_privileges_are_refused() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let shop = Workshop::new();
    let program = shop.write("program", "#!/bin/sh\n");
    let own = std::fs::metadata(&program).unwrap().uid();
    let set_user =
        || std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    set_user();
    assert!(see_shell(&shop, "./program").is_fine(), "a user gains nothing by becoming itself");
    if own == 0 {
        chown(&program, Some(12345), None).unwrap();
        set_user();
        assert!(see_shell(&shop, "./program").refused("set-user-id"));
    } else if std::fs::metadata("/usr/bin/su").is_ok_and(|found| found.mode() & 0o4000 != 0) {
        let seen = see_shell(&shop, "/usr/bin/su --version");
        assert!(seen.refused("set-user-id") && seen.watched.disturbed, "watched, it has no power");
    }
}
