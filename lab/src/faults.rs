//! Faults around Tasting: processes that are killed, a disk that is full, a store that cannot be
//! written, clocks that jump, two versions at once, very many processes. After each of them every
//! entry of the store has to be whole, and every result right.

mod ground;

use self::ground::{Ground, fingerprint};
use crate::dice::Dice;
use crate::generate;
use crate::process::{self, Ended};
use crate::program::{Packaging, Program};
use crate::report::Faults;
use crate::setup::{Tools, command};
use crate::stored;
use std::fs::{self, File, FileTimes};
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

const PATIENCE: Duration = Duration::from_secs(120);

/// Injects faults of every kind, `amount` times as many as in a short run.
pub fn run(tools: &Tools, scratch: &Path, seed: u64, amount: u64) -> io::Result<Faults> {
    let mut dice = Dice::new(seed, "faults");
    let program = program(&mut dice);
    let folder = scratch.join("faults");
    let Some(mut ground) = Ground::new(tools, &program, &folder, dice)? else {
        return Ok(Faults {
            left_out: vec!["the program for the faults is not built: try another seed".to_owned()],
            ..Faults::default()
        });
    };
    ground.kill_runners(60 * amount)?;
    ground.kill_shims(20 * amount)?;
    ground.many_at_once(if amount > 1 { 200 } else { 60 })?;
    ground.two_versions(20 * amount)?;
    ground.jumping_clocks(10 * amount)?;
    ground.strange_entries()?;
    ground.without_room()?;
    let found = ground.found;
    fs::remove_dir_all(&folder)?;
    Ok(found)
}

/// One file each, so that a build is one compiler and one linker.
fn program(dice: &mut Dice) -> Program {
    let mut program = generate::small_c(dice);
    program.units.iter_mut().for_each(|unit| unit.place = Packaging::Object);
    program.tests.truncate(5);
    program
}

impl<'g> Ground<'g> {
    /// Runners that are killed at any time: before, while and after the test runs, while they
    /// write.
    fn kill_runners(&mut self, count: u64) -> io::Result<()> {
        for _ in 0..count {
            let (version, test) = self.any();
            // A store that knows everything would have little to write.
            if self.dice.percent(20) {
                let _ = fs::remove_dir_all(&self.store);
            }
            let child = quiet(&mut self.runner(version, test)).spawn()?;
            let time = Duration::from_micros(self.dice.below(25_000) as u64);
            kill_after(child, time)?;
        }
        self.injected("runners killed", count);
        self.check("killed runners", true)
    }

    /// Compilers and linkers whose shims are killed. What is built afterwards is what was built
    /// before.
    fn kill_shims(&mut self, count: u64) -> io::Result<()> {
        for number in 0..count {
            let version = self.dice.below(2);
            let unit = self.dice.below(self.program.units.len());
            let mut command =
                if number % 2 == 0 { self.compiler(version, unit) } else { self.linker(version) };
            let child = quiet(&mut command).spawn()?;
            let time = Duration::from_micros(self.dice.below(60_000) as u64);
            kill_after(child, time)?;
        }
        // The compilers themselves were not killed, and may still write.
        thread::sleep(Duration::from_millis(500));
        self.injected("shims killed", count);
        for version in 0..2 {
            let binary = self.checkouts[version].join("bin/prog");
            for unit in 0..self.program.units.len() {
                self.build(version, &mut self.compiler(version, unit))?;
            }
            self.build(version, &mut self.linker(version))?;
            if fingerprint(&binary) != self.fingerprints[version] {
                self.found
                    .lost
                    .push(format!("after killed shims: version {version} has another fingerprint"));
            }
        }
        self.check("killed shims", true)
    }

    /// Very many processes at the same time, on a store that knows nothing.
    fn many_at_once(&mut self, count: usize) -> io::Result<()> {
        let _ = fs::remove_dir_all(&self.store);
        let mut running = Vec::new();
        for number in 0..count {
            let (version, test) = self.any();
            let folder = self.store.with_file_name(format!("out-{number}"));
            fs::create_dir_all(&folder)?;
            let mut command = self.runner(version, test);
            command
                .stdin(Stdio::null())
                .stdout(File::create(folder.join("stdout"))?)
                .stderr(File::create(folder.join("stderr"))?);
            running.push((version, test, folder, command.spawn()?));
        }
        for (version, test, folder, mut child) in running {
            let end =
                process::wait(&mut child, PATIENCE)?.map_or(process::End::Hang, process::end_of);
            let [stdout, stderr] =
                [fs::read(folder.join("stdout"))?, fs::read(folder.join("stderr"))?];
            if (Ended { end, stdout, stderr }) != self.expected[version][test] {
                self.found
                    .lost
                    .push(format!("one of {count} processes: test {test} of version {version} gives another result"));
            }
            fs::remove_dir_all(folder)?;
        }
        self.injected("processes at once", count as u64);
        self.check("many processes", true)
    }

    /// Runs a test of the version that lies in a place, from the store, and looks whether it gives
    /// what that version gives.
    fn try_in(&mut self, place: &Path, fault: &str, version: usize, test: usize) -> io::Result<()> {
        let mut command = command(&self.tools.tasting, &place.join("bin"), place, "code");
        command
            .env("TASTING_DIR", &self.store)
            .args(["run", "--reuse-failures", "--", "./prog"])
            .args(&self.program.tests[test].argument);
        let given = process::run(&mut command, place, PATIENCE)?;
        if given != self.expected[version][test] {
            self.found.lost.push(format!(
                "{fault}: test {test} of version {version} gives {}",
                given.describe()
            ));
        }
        Ok(())
    }

    /// Two versions that change places under one path, again and again, while the store knows both.
    fn two_versions(&mut self, count: u64) -> io::Result<()> {
        let place = self.store.with_file_name("place");
        fs::create_dir_all(place.join("bin"))?;
        for _ in 0..count {
            let (version, test) = self.any();
            for name in ["prog", "prog.tasting"] {
                fs::copy(
                    self.checkouts[version].join("bin").join(name),
                    place.join("bin").join(name),
                )?;
            }
            self.try_in(&place, "two versions", version, test)?;
        }
        self.injected("versions exchanged", count);
        self.check("two versions", true)
    }

    /// Binaries and entries of stores that are from the past or the future, and all of the same
    /// time.
    fn jumping_clocks(&mut self, count: u64) -> io::Result<()> {
        let place = self.store.with_file_name("place");
        let past = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        for number in 0..count {
            let (version, test) = self.any();
            let time = if number % 3 == 0 {
                SystemTime::now() + Duration::from_secs(400 * 86_400)
            } else {
                past
            };
            for name in ["prog", "prog.tasting"] {
                // In the same file, so that nothing but the content is new.
                let path = place.join("bin").join(name);
                fs::write(&path, fs::read(self.checkouts[version].join("bin").join(name))?)?;
                set_time(&path, time)?;
            }
            if number % 4 == 0 {
                stored::for_each(&self.store, &mut |path| set_time(path, time))?;
            }
            self.try_in(&place, "clocks", version, test)?;
        }
        self.injected("clocks moved", count);
        self.check("moved clocks", true)
    }

    /// Entries as another version of Tasting would write them, or as a bad disk would leave them:
    /// they are not answers.
    fn strange_entries(&mut self) -> io::Result<()> {
        self.check("strange entries, before", true)?;
        let (mut count, mut dice) = (0, self.dice.clone());
        stored::for_each(&self.store, &mut |path| {
            let mut bytes = fs::read(path)?;
            if bytes.len() < 32 {
                return Ok(());
            }
            match dice.below(4) {
                0 => bytes[8] = bytes[8].wrapping_add(1),
                1 => bytes.truncate(bytes.len() / 2),
                2 => {
                    let at = dice.below(bytes.len());
                    bytes[at] ^= 0x10;
                }
                _ => return Ok(()),
            }
            count += 1;
            fs::write(path, bytes)
        })?;
        self.injected("entries damaged, or of another version", count);
        for version in 0..2 {
            for test in 0..self.program.tests.len() {
                let given = process::run(
                    &mut self.runner(version, test),
                    &self.checkouts[version].join("out"),
                    PATIENCE,
                )?;
                if given != self.expected[version][test] {
                    self.found.lost.push(format!(
                        "strange entries: test {test} of version {version} gives {}",
                        given.describe()
                    ));
                }
            }
        }
        let _ = fs::remove_dir_all(&self.store);
        self.check("strange entries, after", true)
    }

    /// A store on a disk that is full, and then one that cannot be written.
    fn without_room(&mut self) -> io::Result<()> {
        let _ = fs::remove_dir_all(&self.store);
        fs::create_dir_all(&self.store)?;
        for size in ["size=16k", "size=64k", "size=256k"] {
            if !mount(&["-t", "tmpfs", "-o", size, "tmpfs"], &self.store) {
                self.found.left_out.push(
                    "a full disk and a read-only store: mounting is not allowed here".to_owned(),
                );
                return Ok(());
            }
            let full = self.check("a full disk", false);
            let read_only = mount(&["-o", "remount,ro"], &self.store);
            let written = if read_only { self.check("a read-only store", false) } else { Ok(()) };
            let unmounted = Command::new("umount").arg(&self.store).status()?.success();
            full?;
            written?;
            if !unmounted {
                return Err(io::Error::other("the small disk cannot be unmounted"));
            }
            self.injected("runs with a full disk", 4 * self.program.tests.len() as u64);
            self.injected(
                "runs with a read-only store",
                if read_only { 4 * self.program.tests.len() as u64 } else { 0 },
            );
        }
        Ok(())
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

fn kill_after(mut child: Child, time: Duration) -> io::Result<()> {
    thread::sleep(time);
    child.kill()?;
    child.wait()?;
    Ok(())
}

fn set_time(path: &Path, time: SystemTime) -> io::Result<()> {
    File::options()
        .write(true)
        .open(path)?
        .set_times(FileTimes::new().set_modified(time).set_accessed(time))
}

fn mount(options: &[&str], place: &Path) -> bool {
    let mut command = Command::new("mount");
    command.args(options).arg(place).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
