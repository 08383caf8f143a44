//! Standard input and descriptors that are inherited from outside.

use super::ends::{report, watcher};
use crate::workshop::Workshop;
use std::fs::File;
use std::process::Stdio;

#[test]
fn standard_input_is_named() {
    let shop = Workshop::new();
    let file = shop.write("input", "text\n");
    let from_file =
        report(&shop, watcher(&shop, "cat").stdin(File::open(file).unwrap()).stdout(Stdio::null()));
    assert!(
        from_file.contains("File {")
            && from_file.contains("position: 0")
            && from_file.ends_with("[]"),
        "{from_file}"
    );
    let from_nothing = report(&shop, watcher(&shop, "cat").stdin(Stdio::null()));
    assert!(from_nothing.contains("Empty") && from_nothing.ends_with("[]"), "{from_nothing}");
}

#[test]
fn an_unread_pipe_on_standard_input_is_fine() {
    let shop = Workshop::new();
    let lines = [
        ("echo unread", false),
        ("cat input | wc -c; cat < input", false),
        ("cat", true),
        ("read line", true),
        ("cat /dev/stdin", true),
        ("exec 5<&0; cat <&5", true),
        ("python3 -c 'import select; select.select([0], [], [], 0)'", true),
        ("python3 -c 'import select; p = select.poll(); p.register(0, 1); p.poll(0)'", true),
        ("python3 -c 'import select; select.epoll().register(0, 1)'", true),
        ("python3 -c 'import select; p = select.poll(); p.register(0, 0); p.poll(0)'", false),
        ("python3 -c 'import os, select; select.select([os.pipe()[0]], [], [], 0)'", false),
    ];
    shop.write("input", "text\n");
    for (line, refused) in lines {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(writer);
        let outcome =
            report(&shop, watcher(&shop, &format!("{line} > /dev/null; true")).stdin(reader));
        assert!(outcome.contains("Pipe"), "{outcome}");
        assert_eq!(outcome.contains("comes from outside"), refused, "{line}: {outcome}");
    }
}

#[test]
fn unused_inherited_descriptors_are_fine() {
    let shop = Workshop::new();
    for (line, refused) in
        [("true", false), ("echo x >&7", true), ("exec 7< /dev/null; cat <&7", false)]
    {
        let mut watcher = watcher(&shop, line);
        let mut outer = shop.command("/bin/sh");
        outer
            .args(["-c", "exec 7> inherited; exec \"$@\"", "sh"])
            .arg(watcher.get_program())
            .args(watcher.get_args());
        outer.envs(watcher.get_envs().filter_map(|(name, value)| Some((name, value?))));
        outer.stdout(Stdio::null());
        let outcome = report(&shop, &mut outer);
        assert_eq!(outcome.contains("descriptor 7"), refused, "{line}: {outcome}");
        watcher.stdin(Stdio::null());
    }
}
