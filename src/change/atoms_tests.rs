use super::*;
use crate::model::Hash;
use crate::model::manifest::{Edge, Export, Node};
use AtomKind::{Data, Function, Import, Literal};

/// A node by name, kind, content and targets.
type Plan<'p> = (&'static str, AtomKind, &'static str, &'p [u32]);

/// Everything counts.
fn compare(before: &[Manifest], now: &[Manifest], entry: Option<&str>) -> Comparison {
    super::compare(before, now, entry, None)
}

fn manifest(plan: &[Plan], roots: &[u32]) -> Manifest<'static> {
    let edge = |node: &u32| Edge { node: *node, offset: 0, takes_address: false };
    let mut manifest = Manifest {
        inputs: vec!["a/x.o".into()],
        files: vec!["x.c".into()],
        roots: roots.iter().map(edge).collect(),
        ..Manifest::default()
    };
    for (index, (name, kind, content, targets)) in plan.iter().enumerate() {
        manifest.edges.extend(targets.iter().map(edge));
        manifest.nodes.push(Node {
            name: (*name).into(),
            kind: *kind,
            level: Level::Code,
            hash: Hash::of(content.as_bytes()),
            input: 1,
            address: 0,
            size: content.len() as u64,
            traceable: true,
            file: 0,
            line: 10 * (index as u32 + 1),
            references: targets.len() as u32,
        });
    }
    manifest
}

const PROGRAM: [Plan; 5] = [
    ("_start", Function, "s", &[1]),
    ("main", Function, "m", &[2, 4]),
    ("parse", Function, "p", &[3]),
    ("table", Data, "t", &[]),
    ("hello", Literal, "hello", &[]),
];

fn against(before: &[Plan], now: &[Plan]) -> Comparison {
    compare(&[manifest(before, &[0])], &[manifest(now, &[0])], None)
}

fn told(comparison: &Comparison) -> Vec<(AtomFate, &str, String)> {
    comparison
        .changes
        .iter()
        .map(|change| (change.what, change.name.as_str(), change.chain.join(" ")))
        .collect()
}

#[test]
fn the_same_build_has_no_changes() {
    let same = against(&PROGRAM, &PROGRAM);
    assert_eq!(same, Comparison::default());
    // In another order, and with other numbers from the compiler.
    let one =
        [("main", Function, "m", &[1, 2][..]), ("buf.0", Data, "b", &[]), ("end", Data, "e", &[])];
    let other =
        [("main", Function, "m", &[2, 1][..]), ("end", Data, "e", &[]), ("buf.3", Data, "b", &[])];
    assert_eq!(against(&one, &other), Comparison::default());
}

#[test]
fn a_changed_atom_has_place_and_chain() {
    let mut now = PROGRAM;
    now[3].2 = "another t";
    let comparison = against(&PROGRAM, &now);
    assert_eq!(
        told(&comparison),
        [(AtomFate::Changed, "table", "_start main parse table".to_owned())]
    );
    assert_eq!(comparison.changes[0].source, Some(("x.c".to_owned(), 40)));
    assert_eq!((comparison.frame, comparison.roots), (false, false));
}

#[test]
fn unreached_code_does_not_count() {
    let unreached = |content| -> Vec<Plan> {
        PROGRAM.into_iter().chain([("unused", Function, content, &[][..])]).collect()
    };
    assert_eq!(against(&unreached("u"), &unreached("v")), Comparison::default());
    assert_eq!(against(&PROGRAM, &unreached("u")), Comparison::default());
}

#[test]
fn another_string_is_told_by_its_user() {
    let mut now = PROGRAM;
    now[4] = ("hallo", Literal, "hallo", &[]);
    let comparison = against(&PROGRAM, &now);
    assert_eq!(told(&comparison), [(AtomFate::Retargeted, "main", "_start main".to_owned())]);
    assert_eq!(comparison.changes[0].references, [("hello".to_owned(), "hallo".to_owned())]);
}

#[test]
fn added_and_removed_atoms() {
    let mut more = PROGRAM.to_vec();
    more[1] = ("main", Function, "mm", &[2, 4, 5]);
    more.push(("extra", Function, "x", &[]));
    let added = against(&PROGRAM, &more);
    let chain = |rest: &str| format!("_start main{rest}");
    assert_eq!(
        told(&added),
        [(AtomFate::Changed, "main", chain("")), (AtomFate::Added, "extra", chain(" extra"))]
    );
    let removed = against(&more, &PROGRAM);
    assert_eq!(
        told(&removed),
        [(AtomFate::Changed, "main", chain("")), (AtomFate::Removed, "extra", chain(" extra"))]
    );
}

#[test]
fn equal_names_match_within_their_files() {
    let two = |contents: [&'static str; 2]| {
        let plan = [
            ("main", Function, "m", &[1, 2][..]),
            ("help", Function, contents[0], &[]),
            ("help", Function, contents[1], &[]),
        ];
        let mut manifest = manifest(&plan, &[0]);
        manifest.inputs.push("b/y.o".into());
        manifest.nodes[2].input = 2;
        manifest
    };
    let comparison = compare(&[two(["1", "2"])], &[two(["1", "3"])], None);
    assert_eq!(comparison.changes.len(), 1);
    assert_eq!(comparison.changes[0].object.as_deref(), Some("b/y.o"));
}

#[test]
fn moved_code_may_differ_by_line_numbers() {
    let mut moved = manifest(&PROGRAM, &[0]);
    (moved.nodes[2].hash, moved.nodes[2].line) = (Hash::of(b"other"), 31);
    let before = [manifest(&PROGRAM, &[0])];
    assert_eq!(compare(&before, &[moved.clone()], None).changes[0].moved_from, Some(30));
    for different in [|node: &mut Node| node.size += 1, |node: &mut Node| node.line = 30] {
        let mut moved = moved.clone();
        different(&mut moved.nodes[2]);
        assert_eq!(compare(&before, &[moved], None).changes[0].moved_from, None);
    }
}

#[test]
fn an_import_leads_into_the_library() {
    let program = manifest(&[("main", Function, "m", &[1]), ("help", Import, "i", &[])], &[0]);
    let library = |content| {
        let plan = [
            ("help", Function, "h", &[1][..]),
            ("inner", Function, content, &[]),
            ("other", Function, content, &[]),
        ];
        let mut library = manifest(&plan, &[]);
        let export = |name, node| Export {
            name,
            version: "",
            edge: Edge { node, offset: 0, takes_address: false },
        };
        library.exports = vec![export("help", 0), export("other", 2)];
        library
    };
    let (before, now) = ([program.clone(), library("1")], [program, library("2")]);
    assert_eq!(
        told(&compare(&before, &now, None)),
        [(AtomFate::Changed, "inner", "main help inner".to_owned())]
    );
    let mut alone = [library("1"), library("2")];
    alone.iter_mut().for_each(|library| library.shared_library = true);
    let [before, now] = alone.map(|library| [library]);
    let names = |comparison: &Comparison| {
        told(comparison).iter().map(|told| told.1.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&compare(&before, &now, None)), ["other", "inner"]);
}

#[test]
fn calls_by_name_are_compared_last() {
    let program = |content| {
        let mut program =
            manifest(&[("main", Function, "m", &[]), ("plugin", Function, content, &[])], &[0]);
        program.exports = vec![Export {
            name: "plugin",
            version: "",
            edge: Edge { node: 1, offset: 0, takes_address: false },
        }];
        program
    };
    let empty = || manifest(&[("main", Function, "m", &[])], &[0]);
    let comparison = compare(&[empty(), program("1")], &[empty(), program("2")], None);
    assert_eq!(told(&comparison), [(AtomFate::Changed, "plugin", "plugin".to_owned())]);
}

#[test]
fn another_entry_and_another_order_of_roots() {
    let plan = [
        ("_start", Function, "s", &[1][..]),
        ("main", Function, "m", &[]),
        ("test_main", Function, "t", &[]),
        ("up", Function, "u", &[]),
    ];
    let mut now = plan;
    now[1].2 = "mm";
    let compared = |entry| {
        compare(&[manifest(&plan, &[0, 3])], &[manifest(&now, &[0, 3])], entry).changes.len()
    };
    assert_eq!((compared(None), compared(Some("test_main"))), (1, 0));
    let turned = compare(&[manifest(&plan, &[0, 3, 2])], &[manifest(&plan, &[0, 2, 3])], None);
    assert!(turned.roots && turned.changes.is_empty());
}
