//! Names by which changes were missed once: links, folders, places beside a checkout, libraries
//! that are replaced.

use super::Bench;
use crate::workshop::TASTING;
use std::fs;
use std::os::unix::fs::symlink;
use tasting::model::Verdict;

#[test]
fn a_folder_that_cannot_be_replaced_counts() {
    let bench = Bench::new();
    bench.write("data/file", "one");
    let words = ["sh", "-c", "mkdir new; mv -T new data 2> /dev/null; rmdir new; cat data/file"];
    bench.follows(
        &words,
        |bench| _ = bench.write("data/file", "two"),
        |bench| _ = bench.write("data/file", "one"),
    );
}

#[test]
fn a_folder_for_files_that_are_removed_again() {
    for make in [
        "echo x > scratch/file",
        "mkdir scratch/file",
        "ln -s x scratch/file",
        "touch file; mv file scratch",
    ] {
        let bench = Bench::new();
        fs::create_dir(bench.path("scratch")).unwrap();
        let script = format!("{make} && rm -r scratch/file");
        bench.settles(&["sh", "-c", &script]);
        fs::remove_dir(bench.path("scratch")).unwrap();
        assert_ne!(bench.runs(&["sh", "-c", &script]).outcome.code, Some(0), "{make}");
    }
}

#[test]
fn files_where_the_test_removes_its_own() {
    for make in [
        "echo x > scratch",
        "echo x > new; mv new scratch",
        "cp tasting.toml scratch",
        "touch scratch",
    ] {
        let bench = Bench::new();
        let script = format!("{make}; rm scratch");
        let words = ["sh", "-c", &script];
        bench.settles(&words);
        bench.write("scratch", "of somebody else");
        bench.runs(&words);
        assert!(!bench.path("scratch").exists(), "{make}");
        bench.reuses(&words);
    }
}

#[test]
fn random_names_of_removed_files_allow_reuse() {
    for script in [
        "folder=$(mktemp -d) && echo x > $folder/one && mv $folder/one $folder/two && rm -r $folder",
        "file=$(mktemp) && echo x > $file && rm $file",
        "echo x > ${TMPDIR:-/tmp}/scratch.$$ && rm ${TMPDIR:-/tmp}/scratch.$$",
    ] {
        Bench::new().settles(&["sh", "-c", script]);
    }
}

#[test]
fn links_that_are_not_followed() {
    let link = |bench: &Bench, target: &str| {
        let _ = fs::remove_file(bench.path("link"));
        symlink(target, bench.path("link")).unwrap();
    };
    let by_descriptor = "import os; f = os.open('link', os.O_PATH | os.O_NOFOLLOW); print(os.readlink('', dir_fd=f))";
    for words in [
        vec!["sh", "-c", "mv link other; cat other; mv other link"],
        vec!["stat", "-c", "%s", "link"],
        vec!["python3", "-c", by_descriptor],
    ] {
        let bench = Bench::new();
        bench.write("one", "1");
        bench.write("three", "3");
        link(&bench, "one");
        bench.follows(&words, |bench| link(bench, "three"), |bench| link(bench, "one"));
    }
}

#[test]
fn a_folder_named_like_a_deleted_one() {
    let bench = Bench::new();
    bench.write("x (deleted)/file", "one");
    let words = ["sh", "-c", "cd 'x (deleted)' && cat file"];
    let write = |text: &'static str| move |bench: &Bench| _ = bench.write("x (deleted)/file", text);
    bench.follows(&words, write("two"), write("one"));
}

#[test]
fn a_file_that_gets_its_name_last() {
    let bench = Bench::new();
    let script = "import os\nf = os.open('.', os.O_TMPFILE | os.O_WRONLY)\nos.write(f, b'text')\n\
                  os.link(str(f), 'report', src_dir_fd=os.open('/proc/self/fd', os.O_RDONLY), follow_symlinks=True)";
    let words = ["python3", "-c", script];
    bench.runs(&words);
    fs::remove_file(bench.path("report")).unwrap();
    bench.reuses(&words);
    assert_eq!(fs::read_to_string(bench.path("report")).unwrap(), "text");
}

#[test]
fn files_beside_a_checkout_are_not_shared() {
    for words in
        [vec!["cat", "../data"], vec!["bash", "-c", "cd ..; cat data"], vec!["sh", "-c", "ls .."]]
    {
        let bench = Bench::new();
        let run = |folder: &str| {
            bench.write(&format!("{folder}/project/tasting.toml"), "");
            bench.write(&format!("{folder}/data"), folder);
            bench.write(&format!("{folder}/{folder}"), "");
            let mut command = bench.tasting(&words);
            let ran = bench.finish(command.current_dir(bench.path(folder).join("project")));
            (ran.text(), ran.decision.decision)
        };
        let (one, first) = run("one");
        let (two, second) = run("two");
        assert_eq!((first, second), (Verdict::Executed, Verdict::Executed), "{words:?}");
        assert_ne!(one, two);
        assert_eq!(run("one"), (one, Verdict::Reused));
    }
}

#[test]
fn a_home_in_the_project_and_one_elsewhere() {
    let bench = Bench::new();
    let elsewhere = tempfile::tempdir().unwrap();
    for (folder, text) in
        [(bench.path(""), "1"), (bench.path("home"), "2"), (elsewhere.path().to_owned(), "3")]
    {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("file"), text).unwrap();
    }
    let run = |variable: &str, home: &std::path::Path| {
        let mut command = bench.tasting(&["sh", "-c", &format!("cat ${variable}/file home/file")]);
        let ran = bench.finish(command.env(variable, home));
        (ran.text(), ran.decision.decision)
    };
    for variable in ["HOME", "TMPDIR"] {
        assert_eq!(run(variable, &bench.path("")), ("12".to_owned(), Verdict::Executed));
        assert_eq!(run(variable, &bench.path("home")), ("22".to_owned(), Verdict::Executed));
        fs::write(elsewhere.path().join("file"), "2").unwrap();
        bench.write("home/file", "4");
        assert_eq!(run(variable, elsewhere.path()), ("24".to_owned(), Verdict::Executed));
        bench.write("home/file", "2");
        assert_eq!(run(variable, &bench.path("")), ("12".to_owned(), Verdict::Reused));
    }
}

#[test]
fn a_folder_that_is_given_as_a_descriptor() {
    let bench = Bench::new();
    for folder in ["one", "two"] {
        bench.write(&format!("{folder}/file"), folder);
    }
    let run = |folder: &str| {
        let script = "import os; print(os.read(os.open('file', 0, dir_fd=5), 9))";
        let line = format!("exec {TASTING} run -- python3 -c \"{script}\" 5< {folder}");
        let ran = bench.finish(bench.command("sh").args(["-c", &line]));
        (ran.text(), ran.decision.decision)
    };
    assert_eq!(run("one"), ("b'one'\n".to_owned(), Verdict::Executed));
    assert_eq!(run("two"), ("b'two'\n".to_owned(), Verdict::Executed));
    assert_eq!(run("one"), ("b'one'\n".to_owned(), Verdict::Reused));
}

#[test]
fn a_working_folder_with_a_very_long_path() {
    let bench = Bench::new();
    let script = "import os\nfor _ in range(60):\n    os.makedirs('x' * 99, exist_ok=True)\n    os.chdir('x' * 99)\n";
    let make = |text: &str| {
        let script = format!("{script}open('file', 'w').write('{text}')");
        assert!(bench.command("python3").args(["-c", &script]).status().unwrap().success());
    };
    let read = format!("{script}print(open('file').read())");
    for text in ["one", "two"] {
        make(text);
        assert_eq!(bench.runs(&["python3", "-c", &read]).text(), format!("{text}\n"));
    }
}
