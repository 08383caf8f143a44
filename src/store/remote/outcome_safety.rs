//! What an outcome from another machine may do here: leave files in the project, the build folder
//! and folders for temporary files, and nothing else. An outcome is replayed with the rights of the
//! user who runs the test.

use crate::model::{Base, Left, LeftFile, Outcome, PortablePath};
use std::collections::BTreeSet;

/// Set-user-id, set-group-id.
const SPECIAL: u32 = 0o6000;

/// Why an outcome is not to be replayed on another machine than its own.
pub fn of(outcome: &Outcome) -> Option<String> {
    let mut links = BTreeSet::new();
    for file in &outcome.files {
        let shown = String::from_utf8_lossy(&file.place.path).into_owned();
        if let Some(reason) = of_place(&file.place) {
            return Some(format!("it leaves {shown:?} behind, {reason}"));
        }
        if is_below(&file.place, &links) {
            return Some(format!("it leaves {shown:?} behind, by way of a link of its own"));
        }
        match &file.left {
            Left::File { mode, .. } | Left::Folder { mode } if mode & SPECIAL != 0 => {
                return Some(format!("it leaves {shown:?} behind, with special rights"));
            }
            Left::Link { target } if leads_out(&file.place, target) => {
                return Some(format!(
                    "it leaves the link {shown:?} behind, which leads out of its folder"
                ));
            }
            Left::Link { .. } => _ = links.insert((file.place.base, file.place.path.clone())),
            _ => {}
        }
    }
    links_last(&outcome.files, &links)
}

fn of_place(place: &PortablePath) -> Option<&'static str> {
    let path = match place.base {
        Base::Root | Base::Build | Base::Temporary => &place.path[..],
        Base::None => match place.path.strip_prefix(b"/tmp/") {
            Some(path) => path,
            None => return Some("which is none of the project's files"),
        },
        Base::Home | Base::Runtime | Base::Job => {
            return Some("which is none of the project's files");
        }
    };
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let is_plain =
        |part: &&[u8]| !part.is_empty() && ![&b"."[..], b".."].contains(part) && !part.contains(&0);
    if !parts.iter().all(is_plain) {
        return Some("which is no plain path");
    }
    let is_of_git = |part: &&[u8]| part.eq_ignore_ascii_case(b".git");
    parts.iter().any(is_of_git).then_some("which belongs to git")
}

/// Whether a link leads, or may lead, out of the project or the folder for temporary files that it
/// lies in. Somebody who writes through it later would write elsewhere. Behind a name, `..` means
/// the folder that contains whatever that name is a link to.
fn leads_out(place: &PortablePath, target: &[u8]) -> bool {
    let start = if place.base == Base::None { b"/tmp/".len() } else { 0 };
    let depth =
        place.path[start.min(place.path.len())..].iter().filter(|byte| **byte == b'/').count();
    let parts =
        || target.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    let ups = parts().take_while(|part| *part == b"..").count();
    let is_plain =
        parts().skip(ups).all(|part| part != b".." && !part.eq_ignore_ascii_case(b".git"));
    target.is_empty() || target.starts_with(b"/") || target.contains(&0) || ups > depth || !is_plain
}

fn is_below(place: &PortablePath, links: &BTreeSet<(Base, Vec<u8>)>) -> bool {
    let ends = place.path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
    ends.into_iter().any(|end| links.contains(&(place.base, place.path[..end].to_vec())))
}

/// A file may stand before the link that it goes through.
fn links_last(files: &[LeftFile], links: &BTreeSet<(Base, Vec<u8>)>) -> Option<String> {
    let through = files.iter().find(|file| is_below(&file.place, links))?;
    Some(format!(
        "it leaves {:?} behind, by way of a link of its own",
        String::from_utf8_lossy(&through.place.path)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Exit, Origin};
    use std::time::Duration;

    fn outcome(files: Vec<LeftFile>) -> Outcome {
        let (stdout, stderr, turns) = Default::default();
        let (duration, origin) = (Duration::ZERO, Origin::default());
        Outcome {
            exit: Exit::Code(0),
            stdout,
            stderr,
            turns,
            duration,
            files,
            input_end: None,
            origin,
            checkout_specific: false,
        }
    }

    fn file(base: Base, path: &str) -> LeftFile {
        LeftFile {
            place: PortablePath { base, path: path.into() },
            left: Left::File { mode: 0o644, content: Vec::new(), modified: (0, 0) },
        }
    }

    #[test]
    fn files_of_the_project_are_fine() {
        let files = vec![
            file(Base::Root, "out/report.xml"),
            file(Base::Build, "log"),
            file(Base::None, "/tmp/x"),
        ];
        assert_eq!(of(&outcome(files)), None);
    }

    #[test]
    fn everything_else_is_not() {
        for (base, path) in [
            (Base::Home, ".bashrc"),
            (Base::None, "/etc/passwd"),
            (Base::None, "/tmp/../etc/x"),
            (Base::Root, "../x"),
            (Base::Root, "a//b"),
            (Base::Root, "/etc/x"),
            (Base::Root, ".git/hooks/pre-commit"),
            (Base::Root, "sub/.GIT/config"),
            (Base::Root, ""),
            (Base::Runtime, "x"),
        ] {
            assert!(of(&outcome(vec![file(base, path)])).is_some(), "{base:?} {path}");
        }
        let left = Left::File { mode: 0o4755, content: Vec::new(), modified: (0, 0) };
        assert!(of(&outcome(vec![LeftFile { left, ..file(Base::Root, "x") }])).is_some());
    }

    fn link(path: &str, target: &str) -> LeftFile {
        LeftFile { left: Left::Link { target: target.into() }, ..file(Base::Root, path) }
    }

    #[test]
    fn nothing_is_left_below_a_link() {
        let (link, through) = (link("a", "d"), file(Base::Root, "a/b/c"));
        assert_eq!(of(&outcome(vec![link.clone()])), None);
        assert!(of(&outcome(vec![link.clone(), through.clone()])).is_some());
        assert!(of(&outcome(vec![through, link])).is_some());
    }

    #[test]
    fn links_have_to_stay_inside() {
        for (path, target) in
            [("a", "b"), ("a", "./b/c"), ("x/a", "../b"), ("x/y/a", "../../b"), ("x/a", "..")]
        {
            assert_eq!(of(&outcome(vec![link(path, target)])), None, "{path} {target}");
        }
        for (path, target) in [
            ("a", "/etc"),
            ("a", ".."),
            ("x/a", "../../b"),
            ("a", "b/../c"),
            ("a", ".git/hooks"),
            ("x/a", "../.git"),
            ("a", ""),
            ("a", "b\0c"),
        ] {
            assert!(of(&outcome(vec![link(path, target)])).is_some(), "{path} {target}");
        }
        let temporary = |path: &str, target: &str| LeftFile {
            place: PortablePath::absolute(path),
            ..link("", target)
        };
        assert_eq!(of(&outcome(vec![temporary("/tmp/x/a", "../b")])), None);
        assert!(of(&outcome(vec![temporary("/tmp/x/a", "../../etc")])).is_some());
    }
}
