use super::*;
use crate::flow::{Block, canonical};
use Algorithm::{Edges, FullReachability, PartialReachability, ValidReachability};

const ALL: [Algorithm; 4] = [Edges, PartialReachability, FullReachability, ValidReachability];

/// A graph from lines `name: target target`; `.` is out of the function. The content of a block is
/// its name without digits, so that `b1` and `b2` are copies of each other.
fn flow(text: &str) -> Flow {
    let lines: Vec<(&str, &str)> =
        text.split(';').filter_map(|line| line.trim().split_once(':')).collect();
    let number = |name: &str| {
        lines.iter().position(|line| line.0 == name).expect("the block is there") as u32
    };
    let exit = |name: &str| if name == "." { Exit::Outside } else { Exit::Block(number(name)) };
    let block = |(position, (name, targets)): (usize, &(&str, &str))| Block {
        range: 0..0,
        hash: Hash::of(name.trim_end_matches(|digit: char| digit.is_ascii_digit()).as_bytes()),
        references: Vec::new(),
        exits: targets.split_whitespace().map(exit).collect(),
        is_entry: position == 0,
    };
    Flow { blocks: lines.iter().enumerate().map(block).collect() }
}

/// The edges of ways through a graph, each a list of labels.
fn ways(flow: &Flow, ways: &[&[u32]]) -> FxHashSet<Edge> {
    let mut edges = FxHashSet::default();
    for way in ways {
        let mut at = 0;
        for &label in *way {
            edges.insert((at, label));
            match flow.blocks[at as usize].exits[label as usize] {
                Exit::Block(to) => at = to,
                Exit::Outside => break,
            }
        }
    }
    edges
}

/// What each algorithm says of one call.
fn answers(old: &str, now: &str, way: &[u32]) -> [bool; 4] {
    let (old, now) = (flow(old), flow(now));
    let executed = ways(&old, &[way]);
    let intersection = Intersection::new(&old, &now);
    ALL.map(|algorithm| intersection.must_run(algorithm, &executed, Calls::Once))
}

// A branch, one side of which gets a new statement: executions of the other side need not run.
const BRANCH: &str = "if: then else; then: end; else: end; end: .";
const BRANCH_CHANGED: &str = "if: then else; then: new; new: end; else: end; end: .";

#[test]
fn a_changed_branch_affects_those_taking_it() {
    assert_eq!(answers(BRANCH, BRANCH_CHANGED, &[0, 0, 0]), [true; 4]);
    assert_eq!(answers(BRANCH, BRANCH_CHANGED, &[1, 0, 0]), [false; 4]);
    assert_eq!(answers(BRANCH, BRANCH, &[0, 0, 0]), [false; 4]);
}

#[test]
fn another_condition_concerns_everybody() {
    let other = BRANCH.replace("if:", "unless:");
    assert_eq!(answers(BRANCH, &other, &[1, 0, 0]), [true; 4]);
    // A new test in front of a block that is executed.
    assert_eq!(
        answers(BRANCH, "if: then more; more: else end; then: end; else: end; end: .", &[1, 0, 0]),
        [true; 4]
    );
}

// A block that is there twice in the second version: after `b1` the same follows, after `b2`
// something else. An edge behind it is rejected on one way and not on the other, and `Edges` cannot
// tell which of them was taken.
const JOINED: &str = "if: a c; a: b; c: b; b: d e; d: .; e: .";
const COPIED: &str = "if: a c; a: b1; c: b2; b1: d e; b2: d x; d: .; e: .; x: .";

#[test]
fn paths_through_other_copies_do_not_count() {
    // Through `c`, the only way to `b2`, and on to `e`, which has become `x`.
    assert_eq!(answers(JOINED, COPIED, &[1, 0, 1, 0]), [true; 4]);
    // Through `a`: only what follows from the way tells.
    assert_eq!(answers(JOINED, COPIED, &[0, 0, 1, 0]), [true, false, false, false]);
    assert_eq!(answers(JOINED, COPIED, &[1, 0, 0, 0]), [false; 4]);
    let (old, now) = (flow(JOINED), flow(COPIED));
    // `b` alone: what follows it is there once.
    assert_eq!(Intersection::new(&old, &now).multiply_visited(), 1);
}

// All blocks on the rejected way are executed, but not all of its edges: `a` jumps to `c` directly
// in no execution.
const CROSSED: &str = "s: a c; a: b c; b: c; c: b2 d; b2: d; d: .";

#[test]
fn executed_blocks_are_less_than_executed_edges() {
    // `c` is doubled: behind the edge from `a`, `d` is another one.
    let now = "s: a c; a: b c1; b: c; c: b2 d; c1: b2 x; b2: d; d: .; x: .";
    // s a b c d: the edge from c to d was executed, and c after a was not.
    assert_eq!(answers(CROSSED, now, &[0, 0, 0, 1, 0]), [true, true, false, false]);
    assert_eq!(answers(CROSSED, now, &[0, 1, 1, 0]), [true; 4]);
}

// A loop that has to be gone through before it is left. Where the way past the loop is another one
// in the second version, an execution that went through the loop once cannot have gone past it.
const LOOP: &str = "s: h; h: b e; b: h; e: .";
const UNROLLED: &str = "s: h1; h1: b x; b: h; h: b1 e; b1: h; e: .; x: .";

#[test]
fn a_path_covers_all_executed_blocks() {
    // h b h e: the edges s-h, h-b, b-h, h-e. Past the loop (h-e at once) b could not be executed
    // any more.
    assert_eq!(answers(LOOP, UNROLLED, &[0, 0, 0, 1, 0]), [true, true, true, false]);
    // Past the loop it is another one.
    assert_eq!(answers(LOOP, UNROLLED, &[0, 1, 0]), [true; 4]);
}

#[test]
fn many_calls_go_through_anything_in_any_order() {
    let (old, now) = (flow(LOOP), flow(UNROLLED));
    let executed = ways(&old, &[&[0, 0, 0, 1, 0], &[0, 1, 0]]);
    let intersection = Intersection::new(&old, &now);
    assert!(intersection.must_run(ValidReachability, &executed, Calls::Many));
    // The same edges as of one call: whether it was one has to be known.
    assert!(!intersection.must_run(ValidReachability, &executed, Calls::Once));
}

#[test]
fn copies_are_equal_after_minimisation() {
    let copied = flow("if: a c; a: b1; c: b2; b1: d1 e; b2: d2 e; d1: .; d2: .; e: .");
    let joined = flow("if: a c; a: b; c: b; b: d e; d: .; e: .");
    assert!(Intersection::new(&joined, &copied).is_same());
    let all = |flow: &Flow| canonical::hash(flow, &vec![true; flow.blocks.len()]);
    assert_eq!(all(&joined), all(&copied));
    let classes = canonical::classes(&copied, &[true; 8]);
    assert_eq!((classes[3], classes[5]), (classes[4], classes[6]));
}

#[test]
fn changed_blocks_are_named() {
    let (old, now) = (flow(BRANCH), flow(BRANCH_CHANGED));
    assert_eq!(changed_blocks(&old, &now), [2]);
    let turned = flow("if: then else; then: else; else: end; end: .");
    assert_eq!(changed_blocks(&old, &turned), [1]);
    assert!(changed_blocks(&old, &old).is_empty());
}

mod random {
    use super::*;
    use proptest::prelude::*;

    fn graph() -> impl Strategy<Value = Flow> {
        prop::collection::vec((0u8..3, prop::collection::vec(any::<u8>(), 1..3)), 1..7).prop_map(
            |plan| {
                let count = plan.len() as u8 + 1;
                let exit = |to: &u8| match to % count {
                    0 => Exit::Outside,
                    number => Exit::Block(u32::from(number) - 1),
                };
                let block = |(position, (content, exits)): (usize, &(u8, Vec<u8>))| Block {
                    range: 0..0,
                    hash: Hash::of(&[*content]),
                    references: Vec::new(),
                    exits: exits.iter().map(exit).collect(),
                    is_entry: position == 0,
                };
                Flow { blocks: plan.iter().enumerate().map(block).collect() }
            },
        )
    }

    /// The edges of one way, and whether the other version goes along with it.
    fn walked(old: &Flow, now: &Flow, choices: &[u8]) -> (FxHashSet<Edge>, bool) {
        let mut executed = FxHashSet::default();
        let (mut at, mut there) = (0, Some(0));
        let mut is_same = content(&old.blocks[0]) == content(&now.blocks[0]);
        for choice in choices {
            let exits = &old.blocks[at as usize].exits;
            let label = *choice as usize % exits.len();
            executed.insert((at, label as u32));
            let follow = |block: u32| now.blocks[block as usize].exits.get(label).copied();
            let Exit::Block(to) = exits[label] else { break };
            there = match there.and_then(follow) {
                Some(Exit::Block(other))
                    if content(&now.blocks[other as usize])
                        == content(&old.blocks[to as usize]) =>
                {
                    Some(other)
                }
                _ => None,
            };
            is_same &= there.is_some();
            at = to;
        }
        (executed, is_same)
    }

    proptest! {
        #[test]
        fn no_algorithm_misses_a_difference(old in graph(), now in graph(), choices in prop::collection::vec(any::<u8>(), 0..12)) {
            let (executed, is_same) = walked(&old, &now, &choices);
            let intersection = Intersection::new(&old, &now);
            let answers = ALL.map(|algorithm| intersection.must_run(algorithm, &executed, Calls::Once));
            prop_assert!(is_same || answers == [true; 4], "{answers:?}");
            // Each is at least as precise as the one before.
            prop_assert!(answers.windows(2).all(|pair| pair[0] || !pair[1]), "{answers:?}");
        }

        #[test]
        fn equal_hashes_are_equal_graphs(old in graph(), now in graph(), counts in prop::collection::vec(any::<bool>(), 7)) {
            let all = [true; 7];
            let is_same = Intersection::new(&old, &now).is_same();
            prop_assert_eq!(canonical::hash(&old, &all) == canonical::hash(&now, &all), is_same);
            // What does not count of one graph can be anything.
            let mut other = old.clone();
            for (block, _) in other.blocks.iter_mut().zip(&counts).filter(|(_, counts)| !**counts) {
                block.hash = Hash::of(b"another");
            }
            prop_assert_eq!(canonical::hash(&old, &counts), canonical::hash(&other, &counts));
        }
    }
}
