//! What an outcome of somebody else's may do here: leave files in the project, the build folder and folders for temporary files,
//! and nothing else. An outcome is replayed with the rights of whoever runs the test.

use crate::model::{Base, Left, LeftFile, Outcome, Place};
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
            Left::Link { .. } => _ = links.insert((file.place.base, file.place.path.clone())),
            _ => {}
        }
    }
    links_last(&outcome.files, &links)
}

fn of_place(place: &Place) -> Option<&'static str> {
    let path = match place.base {
        Base::Root | Base::Build | Base::Temporary => &place.path[..],
        Base::None => match place.path.strip_prefix(b"/tmp/") {
            Some(path) => path,
            None => return Some("which is none of the project's files"),
        },
        Base::Home | Base::Runtime => return Some("which is none of the project's files"),
    };
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let is_plain = |part: &&[u8]| !part.is_empty() && ![&b"."[..], b".."].contains(part) && !part.contains(&0);
    if !parts.iter().all(is_plain) {
        return Some("which is no plain path");
    }
    let is_of_git = |part: &&[u8]| part.eq_ignore_ascii_case(b".git");
    parts.iter().any(is_of_git).then_some("which belongs to git")
}

fn is_below(place: &Place, links: &BTreeSet<(Base, Vec<u8>)>) -> bool {
    let ends = place.path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
    ends.into_iter().any(|end| links.contains(&(place.base, place.path[..end].to_vec())))
}

/// A file may stand before the link that it goes through.
fn links_last(files: &[LeftFile], links: &BTreeSet<(Base, Vec<u8>)>) -> Option<String> {
    let through = files.iter().find(|file| is_below(&file.place, links))?;
    Some(format!("it leaves {:?} behind, by way of a link of its own", String::from_utf8_lossy(&through.place.path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Exit, Origin};
    use std::time::Duration;

    fn outcome(files: Vec<LeftFile>) -> Outcome {
        let (stdout, stderr, turns) = Default::default();
        let (duration, origin) = (Duration::ZERO, Origin::default());
        Outcome { exit: Exit::Code(0), stdout, stderr, turns, duration, files, input_end: None, origin, bound: false }
    }

    fn file(base: Base, path: &str) -> LeftFile {
        LeftFile { place: Place { base, path: path.into() }, left: Left::File { mode: 0o644, content: Vec::new() } }
    }

    #[test]
    fn files_of_the_project_are_fine() {
        let files = vec![file(Base::Root, "out/report.xml"), file(Base::Build, "log"), file(Base::None, "/tmp/x")];
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
        let left = Left::File { mode: 0o4755, content: Vec::new() };
        assert!(of(&outcome(vec![LeftFile { left, ..file(Base::Root, "x") }])).is_some());
    }

    #[test]
    fn a_link_is_no_way_out() {
        let link = LeftFile { left: Left::Link { target: b"/etc".to_vec() }, ..file(Base::Root, "a") };
        assert_eq!(of(&outcome(vec![link.clone()])), None);
        let through = file(Base::Root, "a/b/c");
        assert!(of(&outcome(vec![link.clone(), through.clone()])).is_some());
        assert!(of(&outcome(vec![through, link])).is_some());
    }
}
