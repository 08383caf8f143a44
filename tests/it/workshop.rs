//! A temporary project folder, the tools that tests put to work in it, and the programs' outcomes.

use std::ffi::OsStr;
use std::fmt;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// The tools under test, as cargo built them.
pub const TASTING: &str = env!("CARGO_BIN_EXE_tasting");
pub const TASTING_CC: &str = env!("CARGO_BIN_EXE_tasting-cc");
pub const TASTING_CXX: &str = env!("CARGO_BIN_EXE_tasting-cxx");
pub const TASTING_LD: &str = env!("CARGO_BIN_EXE_tasting-ld");

/// A project in a folder of its own, which is deleted at the end unless `TASTING_KEEP` is set.
pub struct Workshop {
    folder: PathBuf,
    _guard: Option<TempDir>,
}

impl Workshop {
    pub fn new() -> Workshop {
        let folder = tempfile::Builder::new()
            .prefix("tasting-it-")
            .tempdir()
            .expect("a temporary folder can be made");
        let path = folder.path().to_owned();
        if std::env::var_os("TASTING_KEEP").is_some() {
            eprintln!("kept: {}", folder.keep().display());
            return Workshop { folder: path, _guard: None };
        }
        Workshop { folder: path, _guard: Some(folder) }
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file, and the folders above it, and gives back its path.
    pub fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a file lies in a folder"))
            .expect("folders can be made");
        std::fs::write(&path, content).expect("a file can be written");
        path
    }

    /// A command of this project: it runs in the project's folder, in a plain environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder);
        plain_environment(&mut command);
        command.env("TASTING_DIR", self.path(".store"));
        command
    }
}

/// Writes an executable file, and the folders above it. A process of its own does so: a child that
/// another test starts meanwhile would have the file open for writing until its own program begins,
/// and such a file cannot be executed (ETXTBSY).
pub fn write_executable(path: &Path, content: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().expect("a file lies in a folder"))
        .expect("folders can be made");
    let mut command = Command::new("sh");
    command.args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"]).arg(path).stdin(Stdio::piped());
    let mut child = command.spawn().expect("there is a shell");
    let mut input = child.stdin.take().expect("its input is a pipe");
    input.write_all(content.as_ref()).expect("the shell reads its input");
    drop(input);
    assert!(
        child.wait().expect("a child can be waited for").success(),
        "{} cannot be written",
        path.display()
    );
}

/// Takes away what the caller's environment could change in a build, and fixes the language of
/// messages.
pub fn plain_environment(command: &mut Command) {
    let ours = |name: &OsStr| {
        let name = name.to_string_lossy();
        let of_make = ["MAKELEVEL", "MAKEFLAGS", "MFLAGS", "CFLAGS", "LDFLAGS"];
        // cargo names folders of the build here, wherever the checkout lies.
        let of_cargo = "LD_LIBRARY_PATH";
        // dash hands on no variable whose name has a `-` in it, as these do; other shells do.
        let of_tests = "CARGO_BIN_EXE_";
        ["TASTING_", "CCACHE_", of_tests].iter().any(|prefix| name.starts_with(prefix))
            || of_make.contains(&name.as_ref())
            || name == of_cargo
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C").stdin(Stdio::null());
}

/// How a command ended and what it wrote.
#[derive(Clone, PartialEq, Eq)]
pub struct Outcome {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Outcome {
    pub fn of(command: &mut Command) -> Outcome {
        let output =
            command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        Outcome {
            code: output.status.code(),
            signal: output.status.signal(),
            stdout: output.stdout,
            stderr: output.stderr,
        }
    }

    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "status {:?}, signal {:?}, stdout {:?}",
            self.code,
            self.signal,
            self.stdout_text()
        )?;
        write!(out, ", stderr {:?}", self.stderr_text())
    }
}

/// Runs a command that must succeed; its outcome, or what it complained of.
pub fn succeed(command: &mut Command) -> Result<Outcome, String> {
    let outcome = Outcome::of(command);
    if outcome.success() {
        return Ok(outcome);
    }
    Err(format!("{}: {outcome:?}", command_line(command)))
}

/// A command without the environment that it gets.
fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// The fingerprint that `tasting` prints for a binary, checked for its form.
pub fn fingerprint(command: &mut Command, binary: &Path) -> Result<String, String> {
    let outcome = succeed(command.arg(binary))?;
    let text = outcome.stdout_text();
    let line = text.strip_suffix('\n').unwrap_or(&text);
    match line.split_once("  ") {
        Some((hash, path)) if is_fingerprint(hash) && Path::new(path) == binary => {
            Ok(hash.to_owned())
        }
        _ => Err(format!("not a line of fingerprint and path: {text:?}")),
    }
}

fn is_fingerprint(text: &str) -> bool {
    text.len() == 32
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// What every machine has that can build us, and so what quick tests may use: a C compiler, make,
/// and what Debian takes for granted.
const EVERYWHERE: [&str; 17] = [
    "cc", "gcc", "c++", "g++", "gcov", "ld.bfd", "nm", "objcopy", "strip", "make", "git", "perl",
    "python3", "script", "setarch", "setpriv", "setsid",
];

/// Whether all tests run (`make test`), and not only the quick ones, which need nothing that has to
/// be installed.
pub fn all_tests_run() -> bool {
    std::env::args().any(|word| ["--include-ignored", "--ignored"].contains(&word.as_str()))
}

/// The place of a tool on PATH.
pub fn tool(name: &str) -> PathBuf {
    let is_allowed = EVERYWHERE.contains(&name) || all_tests_run();
    assert!(
        is_allowed,
        "a test that needs `{name}` has to be marked: #[ignore = \"needs {name}\"]"
    );
    which::which(name).unwrap_or_else(|_| {
        panic!("`{name}` is missing: scripts/install-test-tools.sh installs it")
    })
}

/// Makes sure of several tools.
pub fn tools(names: &[&str]) {
    for name in names {
        tool(name);
    }
}

/// A folder with the shims under their installed names, `tasting-c++` among them.
pub fn shims() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shims-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the shims can be made");
        let links = [
            ("tasting", TASTING),
            ("tasting-cc", TASTING_CC),
            ("tasting-c++", TASTING_CXX),
            ("tasting-ld", TASTING_LD),
        ];
        for (name, target) in links {
            // A folder of an earlier process with the same number holds the same links.
            let _ = std::fs::remove_file(folder.join(name));
            symlink(target, folder.join(name)).expect("a link can be made");
        }
        folder
    })
}

/// Waits until a file is there, as long as anybody would.
pub fn wait_for(file: &Path) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !file.exists() && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
