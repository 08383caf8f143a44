//! Inputs that are no files, or not the content of files: descriptors, attributes, sockets,
//! terminals, other processes.

use super::Bench;
use crate::workshop::{TASTING, tool, tools};
use std::fs::{self};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tasting::model::Verdict;

#[test]
fn tables_of_mounts_count_by_content() {
    let bench = Bench::new();
    for script in ["wc -l < /proc/self/mountinfo", "grep -c . /proc/mounts"] {
        bench.settles(&["sh", "-c", script]);
    }
    bench.runs(&["sh", "-c", "cat /proc/net/tcp > /dev/null"]).not_kept("connections");
    fs::create_dir(bench.path("mounted")).unwrap();
    let mount = |line: &str| {
        let line = format!("{line} && exec {TASTING} run -- sh -c 'wc -l < /proc/self/mountinfo'");
        let ran = bench.finish(bench.command("unshare").args(["--mount", "sh", "-c", &line]));
        (ran.text(), ran.decision.decision)
    };
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if is_root {
        let (before, _) = mount("true");
        let (after, verdict) = mount("mount -t tmpfs none mounted");
        assert_ne!(before, after);
        assert_eq!(verdict, Verdict::Executed);
    }
}

#[test]
fn extended_attributes_count() {
    let bench = Bench::new();
    let python = tool("python3");
    let file = bench.write("file", "x");
    let set = |value: &str| set_attribute(&file, value);
    if !set("one") {
        return; // The file system has none.
    }
    let code = "import os; print(os.getxattr('file', 'user.test').decode())";
    let words = [python.to_str().unwrap(), "-c", code];
    assert_eq!(bench.settles(&words).text(), "one\n");
    set("two");
    assert_eq!(bench.runs(&words).text(), "two\n");
    set("one");
    assert_eq!(bench.reuses(&words).text(), "one\n");
}

/// Sets an extended attribute; `false` where there are none.
fn set_attribute(file: &std::path::Path, value: &str) -> bool {
    let code = "import os, sys; os.setxattr(sys.argv[1], 'user.test', sys.argv[2].encode())";
    let python = tool("python3");
    Command::new(python)
        .args(["-c", code])
        .arg(file)
        .arg(value)
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}

#[test]
fn overwritten_files_count_by_kind() {
    let bench = Bench::new();
    let words = ["sh", "-c", "echo x > out 2>/dev/null || echo failed"];
    let out = bench.path("out");
    bench.settles(&words);
    fs::remove_file(&out).unwrap();
    fs::create_dir(&out).unwrap();
    assert_eq!(bench.runs(&words).text(), "failed\n");
    assert!(out.is_dir(), "the folder is still there");
    fs::remove_dir(&out).unwrap();
    symlink("elsewhere", &out).unwrap();
    bench.runs(&words);
    assert_eq!(fs::read_to_string(bench.path("elsewhere")).unwrap(), "x\n");
    fs::remove_file(&out).unwrap();
    fs::write(&out, "old").unwrap();
    bench.reuses(&words);
    fs::set_permissions(&out, PermissionsExt::from_mode(0o755)).unwrap();
    bench.runs(&words);
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn a_file_that_becomes_executable_is_reused() {
    let bench = Bench::new();
    bench.settles(&["sh", "-c", "echo 'echo hello' > gen; chmod +x gen; ./gen"]);
    fs::remove_file(bench.path("gen")).unwrap();
    bench.reuses(&["sh", "-c", "echo 'echo hello' > gen; chmod +x gen; ./gen"]);
}

#[test]
fn a_rename_onto_a_folder_counts() {
    let bench = Bench::with(
        "#include <stdio.h>\nint main(void) { fclose(fopen(\"a\", \"w\")); puts(rename(\"a\", \"b\") ? \"no\" : \"yes\"); }",
    );
    assert_eq!(bench.settles(&["./t"]).text(), "yes\n");
    fs::remove_file(bench.path("b")).unwrap();
    fs::create_dir(bench.path("b")).unwrap();
    assert_eq!(bench.runs(&["./t"]).text(), "no\n");
}

const MAPS: &str = "
import mmap, sys
file = open(sys.argv[1], 'r+b')
memory = mmap.mmap(file.fileno(), 0)
for line in sys.stdin:
    memory[0:1] = line[0:1].encode()
    print('done', flush=True)
";

#[test]
fn changes_through_mapped_memory_are_seen() {
    let bench = Bench::new();
    let python = tool("python3");
    let file = bench.write("data", "0 is here\n");
    let mut other = Command::new(python);
    let mut other = other
        .args(["-c", MAPS])
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut write = |letter: &str| {
        writeln!(other.stdin.as_mut().unwrap(), "{letter}").unwrap();
        other.stdout.as_mut().unwrap().read_exact(&mut [0; 5]).unwrap();
    };
    write("1");
    // What is younger is not remembered anyway.
    std::thread::sleep(Duration::from_millis(3100));
    assert_eq!(bench.settles(&["cat", "data"]).text(), "1 is here\n");
    write("2");
    assert_eq!(bench.runs(&["cat", "data"]).text(), "2 is here\n");
    drop(other.stdin.take());
    other.wait().unwrap();
}

#[test]
fn capabilities_and_personality_count() {
    let bench = Bench::new();
    let through = |words: &[&str]| {
        let mut command = bench.command(words[0]);
        command.args(&words[1..]).args([TASTING, "run", "--", "echo", "a"]);
        bench.finish(&mut command).decision.decision
    };
    bench.settles(&["echo", "a"]);
    assert_eq!(through(&["setarch", "-R"]), Verdict::Executed);
    assert_eq!(through(&["setarch", "-R"]), Verdict::Reused);
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if is_root {
        let without = ["setpriv", "--inh-caps=-net_raw", "--bounding-set=-net_raw"];
        assert_eq!(through(&without), Verdict::Executed);
        assert_eq!(through(&without), Verdict::Reused);
    }
    bench.reuses(&["echo", "a"]);
}

#[test]
fn asking_for_processes_outside_is_not_kept() {
    let bench = Bench::new();
    let mut outsider = Command::new("sleep").arg("100").spawn().unwrap();
    let script = format!("kill -0 {} && echo alive", outsider.id());
    bench.runs(&["sh", "-c", &script]).not_kept("not its own");
    outsider.kill().unwrap();
    outsider.wait().unwrap();
    bench.settles(&[
        "bash",
        "-c",
        "sleep 9 & kill -0 $! && echo alive; kill $!; wait; kill -0 $$ && kill -0 0",
    ]);
}

/// Runs a line of shell with a terminal, and without one.
fn on_terminal(bench: &Bench, line: &str, size: Option<&str>) -> Verdict {
    let size = size.map_or(String::new(), |size| format!("stty {size}; "));
    let line = format!("{size}{TASTING} run -- {line}");
    let mut command = bench.command("script");
    bench.finish(command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null())).decision.decision
}

#[test]
fn a_controlling_terminal_counts_when_asked_for() {
    let bench = Bench::new();
    tools(&["script", "setsid"]);
    let line = "sh -c '(exec 3<>/dev/tty) 2>/dev/null && echo tty > out || echo none > out' >/dev/null 2>&1";
    let without = || {
        let mut command = bench.command("setsid");
        let ran =
            bench.finish(command.args(["-w", "sh", "-c", &format!("{TASTING} run -- {line}")]));
        (ran.decision.decision, fs::read_to_string(bench.path("out")).unwrap())
    };
    assert_eq!(without(), (Verdict::Executed, "none\n".to_owned()));
    assert_eq!(without(), (Verdict::Reused, "none\n".to_owned()));
    assert_eq!(on_terminal(&bench, line, None), Verdict::Executed);
    assert_eq!(fs::read_to_string(bench.path("out")).unwrap(), "tty\n");
    // Bash looks for one whenever it starts.
    let bash = "bash -c true >/dev/null 2>&1 </dev/null";
    assert_eq!(on_terminal(&bench, bash, None), Verdict::Executed);
    assert_eq!(on_terminal(&bench, bash, None), Verdict::Reused);
}

#[test]
fn the_size_of_the_terminal_counts() {
    let bench = Bench::new();
    tool("script");
    for line in ["stty size", "sh -c 'stty size' 2>&1 >out"] {
        assert_eq!(on_terminal(&bench, line, Some("rows 30 cols 90")), Verdict::Executed, "{line}");
        assert_eq!(on_terminal(&bench, line, Some("rows 30 cols 90")), Verdict::Reused, "{line}");
        assert_eq!(on_terminal(&bench, line, Some("rows 30 cols 91")), Verdict::Executed, "{line}");
    }
}

const BINDS: &str = r#"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
int main(int count, char **words) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(atoi(words[1]))};
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    puts(bind(fd, (struct sockaddr *)&to, sizeof to) ? "busy" : "free");
    return listen(fd, 5) && count < 0;
}
"#;

#[test]
fn a_busy_port_counts() {
    let bench = Bench::with(BINDS);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    let ran = bench.runs(&["./t", &port]);
    assert_eq!(ran.text(), "busy\n");
    ran.not_kept("in use by a process outside");
    drop(server);
    assert_eq!(bench.settles(&["./t", &port]).text(), "free\n");
    let _server = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    assert_eq!(bench.runs(&["./t", &port]).text(), "busy\n");
}

const SERVES: &str = "
import socket, sys
server = socket.socket()
server.bind(('127.0.0.1', 0))
server.listen()
open('port', 'w').write(str(server.getsockname()[1]))
connection = server.accept()[0]
print(connection.recv(9).decode())
";

#[test]
fn an_outsider_who_connects_is_not_kept() {
    let bench = Bench::new();
    let python = tool("python3");
    let connect = || {
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            let port = fs::read_to_string(bench.path("port")).unwrap_or_default();
            if let Ok(mut stream) = TcpStream::connect(format!("127.0.0.1:{port}")) {
                return stream.write_all(b"hello").unwrap();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(connect);
        let ran = bench.runs(&[python.to_str().unwrap(), "-c", SERVES]);
        assert_eq!(ran.text(), "hello\n");
        ran.not_kept("no process of the test connects");
    });
}

#[test]
fn foreign_pipes_and_socket_names_are_refused() {
    let bench = Bench::new();
    let python = tool("python3");
    let path = bench.path("pipe");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let end = Instant::now() + Duration::from_secs(20);
            while !path.exists() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(20));
            }
            fs::write(&path, "hello\n").unwrap();
        });
        let ran = bench.runs(&["sh", "-c", "mkfifo pipe; cat pipe; rm pipe"]);
        assert_eq!(ran.text(), "hello\n");
        ran.not_kept("somebody outside the test has its other end");
    });
    let name = format!("tasting-it-{}", std::process::id());
    let code = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\n\
         try: s.bind('\\0{name}'); print('free')\nexcept OSError: print('taken')"
    );
    let words = [python.to_str().unwrap(), "-c", &code];
    assert_eq!(bench.settles(&words).text(), "free\n");
    use std::os::linux::net::SocketAddrExt;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _server = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let ran = bench.runs(&words);
    assert_eq!(ran.text(), "taken\n");
    ran.not_kept("somebody outside the test");
}
