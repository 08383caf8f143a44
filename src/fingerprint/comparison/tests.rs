//! The comparison, held against walks: what it says is unchanged has the same hash.

use super::*;
use crate::fingerprint::walk::{Guide, Walked, through};
use crate::model::{Hash, Level};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A node of a module, whose place in the list can be changed.
#[derive(Clone, Debug)]
struct Atom {
    name: usize,
    kind: AtomKind,
    hash: u8,
    traceable: bool,
    address: u64,
    size: u64,
    /// Target, offset, whether it takes the address.
    edges: Vec<(usize, i64, bool)>,
}

#[derive(Clone, Debug)]
struct Build {
    atoms: Vec<Atom>,
    roots: Vec<(usize, i64, bool)>,
    /// Name, version, target.
    exports: Vec<(usize, bool, usize)>,
    digest: u8,
}

const NAMES: [&str; 12] =
    ["a", "b", "c", "d", "e", "f", "g", "h", "i", "dlsym", "getauxval", "dladdr"];
const MOST: usize = 9;

fn edge(count: usize) -> impl Strategy<Value = (usize, i64, bool)> {
    (0..count, select(vec![0, 0, 0, 8]), prop::bool::weighted(0.3))
}

fn atom(count: usize) -> impl Strategy<Value = Atom> {
    let kinds = vec![
        AtomKind::Function,
        AtomKind::Function,
        AtomKind::Data,
        AtomKind::Literal,
        AtomKind::ThreadLocal,
        AtomKind::Import,
    ];
    let numbers = (0..NAMES.len(), 0..3u8, 0..12u64, 0..5u64);
    (select(kinds), numbers, any::<bool>(), prop::collection::vec(edge(count), 0..=3)).prop_map(
        |(kind, (name, hash, address, size), traceable, edges)| Atom {
            name,
            kind,
            hash,
            traceable: traceable && kind == AtomKind::Function,
            address: 2 * address,
            size,
            edges,
        },
    )
}

fn build() -> impl Strategy<Value = Build> {
    (1..=MOST).prop_flat_map(|count| {
        let exports = prop::collection::vec((0..NAMES.len(), any::<bool>(), 0..count), 0..=3);
        (
            prop::collection::vec(atom(count), count),
            prop::collection::vec(edge(count), 0..=2),
            exports,
        )
            .prop_map(|(atoms, roots, exports)| Build { atoms, roots, exports, digest: 0 })
    })
}

/// Things that happen to a build.
#[derive(Clone, Debug)]
enum Edit {
    Content(Index, u8),
    Redirect(Index, Index, Index),
    Edges(Index, Index),
    Rename(Index, usize),
    Address(Index, u64),
    Grow(Index),
    Kind(Index, Index),
    Traceable(Index),
    Added(Atom),
    Root(Index),
    Export(usize, Index),
    Digest,
    Order(u64),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    prop_oneof![
        (at(), 0..3u8).prop_map(|(at, hash)| Edit::Content(at, hash)),
        (at(), at(), at()).prop_map(|(at, edge, to)| Edit::Redirect(at, edge, to)),
        (at(), at()).prop_map(|(at, to)| Edit::Edges(at, to)),
        (at(), 0..NAMES.len()).prop_map(|(at, name)| Edit::Rename(at, name)),
        (at(), 0..26u64).prop_map(|(at, address)| Edit::Address(at, address)),
        at().prop_map(Edit::Grow),
        (at(), at()).prop_map(|(at, from)| Edit::Kind(at, from)),
        at().prop_map(Edit::Traceable),
        atom(1).prop_map(Edit::Added),
        at().prop_map(Edit::Root),
        (0..NAMES.len(), at()).prop_map(|(name, at)| Edit::Export(name, at)),
        Just(Edit::Digest),
        any::<u64>().prop_map(Edit::Order),
    ]
}

impl Build {
    fn edited(&self, edits: &[Edit]) -> Build {
        let mut build = self.clone();
        edits.iter().for_each(|edit| build.edit(edit));
        build
    }

    fn edit(&mut self, edit: &Edit) {
        let count = self.atoms.len();
        let atom = |at: &Index| at.index(count);
        match edit {
            Edit::Content(at, hash) => self.atoms[atom(at)].hash = *hash,
            Edit::Redirect(at, edge, to) => {
                let edges = &mut self.atoms[atom(at)].edges;
                if !edges.is_empty() {
                    let edge = edge.index(edges.len());
                    edges[edge].0 = to.index(count);
                }
            }
            Edit::Edges(at, to) => match self.atoms[atom(at)].edges.pop() {
                Some(_) => {}
                None => self.atoms[atom(at)].edges.push((atom(to), 0, false)),
            },
            Edit::Rename(at, name) => self.atoms[atom(at)].name = *name,
            Edit::Address(at, address) => self.atoms[atom(at)].address = *address,
            Edit::Grow(at) => {
                let from = self.atoms[atom(at)].address;
                self.atoms.iter_mut().filter(|atom| atom.address > from).for_each(|atom| {
                    atom.address += 6;
                });
            }
            Edit::Kind(at, from) => {
                let kind = self.atoms[atom(from)].kind;
                self.atoms[atom(at)].kind = kind;
            }
            Edit::Traceable(at) => self.atoms[atom(at)].traceable ^= true,
            Edit::Added(atom) => self.atoms.push(atom.clone()),
            Edit::Root(at) => match self.roots.pop() {
                Some(_) => {}
                None => self.roots.push((atom(at), 0, false)),
            },
            Edit::Export(name, at) => self.exports.push((*name, false, atom(at))),
            Edit::Digest => self.digest ^= 1,
            Edit::Order(order) => self.renumber(*order),
        }
    }

    fn renumber(&mut self, order: u64) {
        let count = self.atoms.len();
        let mut keys: Vec<(u64, usize)> = (0..count)
            .map(|at| ((order ^ at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7, at))
            .collect();
        keys.sort_unstable();
        let mut number = vec![0; count];
        keys.iter().enumerate().for_each(|(new, (_, old))| number[*old] = new);
        self.atoms = keys.iter().map(|(_, old)| self.atoms[*old].clone()).collect();
        let edges = self.atoms.iter_mut().flat_map(|atom| &mut atom.edges);
        edges.chain(&mut self.roots).for_each(|edge| edge.0 = number[edge.0]);
        self.exports.iter_mut().for_each(|export| export.2 = number[export.2]);
    }

    fn manifest(&self) -> Manifest<'static> {
        let edge = |&(node, offset, takes_address): &(usize, i64, bool)| Edge {
            node: node as u32,
            offset,
            takes_address,
        };
        let node = |atom: &Atom| Node {
            name: NAMES[atom.name].into(),
            kind: atom.kind,
            level: Level::Code,
            hash: Hash([atom.hash; 16]),
            input: 0,
            address: atom.address,
            size: atom.size,
            traceable: atom.traceable,
            file: 0,
            line: 0,
            references: atom.edges.len() as u32,
        };
        let export = |(name, version, node): &(usize, bool, usize)| Export {
            name: NAMES[*name],
            version: if *version { "1" } else { "" },
            edge: Edge { node: *node as u32, ..Edge::default() },
        };
        let mut exports: Vec<Export> = self.exports.iter().map(export).collect();
        exports.sort_by_key(|export| (export.name, export.version));
        exports.dedup_by_key(|export| (export.name, export.version));
        Manifest {
            digest: Hash([self.digest; 16]),
            nodes: self.atoms.iter().map(node).collect(),
            edges: self.atoms.iter().flat_map(|atom| atom.edges.iter().map(edge)).collect(),
            roots: self.roots.iter().map(edge).collect(),
            exports,
            ..Manifest::default()
        }
    }

    /// The addresses of some of its functions, sorted.
    fn executed(&self, which: u64) -> Vec<u32> {
        let is_executed = |(at, _): &(usize, &Atom)| which >> (at % 64) & 1 == 1;
        let executed = self.atoms.iter().enumerate().filter(is_executed);
        let mut executed: Vec<u32> = executed.map(|(_, atom)| atom.address as u32).collect();
        executed.sort_unstable();
        executed
    }
}

/// What is executed of a program and a library, and how they are put together.
#[derive(Clone, Debug)]
struct Run {
    executed: [u64; 2],
    is_late: bool,
    has_entry: bool,
}

fn run() -> impl Strategy<Value = Run> {
    (any::<[u64; 2]>(), prop::bool::weighted(0.1), prop::bool::weighted(0.2))
        .prop_map(|(executed, is_late, has_entry)| Run { executed, is_late, has_entry })
}

impl Run {
    fn start(&self) -> Start<'static> {
        if self.has_entry { Start::Entry("a") } else { Start::Program }
    }

    fn graph<'m>(&self, manifests: &'m [Manifest<'static>]) -> ModuleGraph<'m, 'static> {
        let library = match self.is_late {
            true => Module::Late(&manifests[1]),
            false => Module::Known(&manifests[1]),
        };
        ModuleGraph::new(vec![Module::Known(&manifests[0]), library])
    }

    fn walk(&self, builds: &[Build], graph: &ModuleGraph) -> Option<Walked> {
        let executed: Vec<Vec<u32>> =
            builds.iter().zip(self.executed).map(|(build, which)| build.executed(which)).collect();
        let places: Vec<Option<&[u32]>> = executed.iter().map(|places| Some(&**places)).collect();
        through(graph, self.start(), Guide::Executed(&places))
    }

    /// Whether the comparison says that a walk sees the same; and then it has to.
    fn is_unchanged(&self, before: &[Build], now: &[Build]) -> bool {
        let manifests: [Vec<Manifest>; 2] =
            [before, now].map(|builds| builds.iter().map(Build::manifest).collect());
        let [earlier, later] = [&manifests[0], &manifests[1]].map(|pair| self.graph(pair));
        let Some(walked) = self.walk(before, &earlier) else { return false };
        let differences = compare(&earlier, &later, self.start());
        let is_unchanged = differences.is_some_and(|differences| !differences.touch(&walked.visit));
        if is_unchanged {
            let again = through(&later, self.start(), Guide::Set(&walked.entered)).unwrap();
            assert_eq!((again.fingerprint, &again.entered), (walked.fingerprint, &walked.entered));
        }
        is_unchanged
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn unchanged_after_edits_has_the_same_hash(
        program in build(),
        library in build(),
        edits in prop::collection::vec((any::<bool>(), edit()), 0..4),
        run in run(),
    ) {
        let of = |library: bool| -> Vec<Edit> {
            edits.iter().filter(|edit| edit.0 == library).map(|edit| edit.1.clone()).collect()
        };
        let now = [program.edited(&of(false)), library.edited(&of(true))];
        run.is_unchanged(&[program, library], &now);
    }

    #[test]
    fn unchanged_among_unrelated_builds_has_the_same_hash(
        programs in (build(), build()),
        libraries in (build(), build()),
        run in run(),
    ) {
        run.is_unchanged(&[programs.0, libraries.0], &[programs.1, libraries.1]);
    }

    #[test]
    fn the_same_in_another_order_is_unchanged(program in build(), library in build(), order in any::<u64>(), run in run()) {
        let mut programs = [program.clone(), program];
        programs.iter_mut().for_each(|program| {
            program.atoms.iter_mut().enumerate().for_each(|(at, atom)| atom.name = at);
        });
        programs[1].renumber(order);
        let [before, now] = programs;
        let manifests = [before.manifest(), library.manifest()];
        let graph = run.graph(&manifests);
        if run.walk(&[before.clone(), library.clone()], &graph).is_some() {
            prop_assert!(run.is_unchanged(&[before, library.clone()], &[now, library]));
        }
    }

    #[test]
    fn what_was_not_entered_may_change(program in build(), library in build(), at in any::<Index>(), run in run()) {
        let mut before = [program, library];
        before[0].atoms.iter_mut().enumerate().for_each(|(at, atom)| atom.name = at);
        let manifests = [before[0].manifest(), before[1].manifest()];
        let graph = run.graph(&manifests);
        let at = at.index(before[0].atoms.len());
        // What the loader binds counts where it is referred to.
        prop_assume!(before[0].atoms[at].kind != AtomKind::Import);
        let mut now = before.clone();
        now[0].atoms[at].hash = 99;
        now[0].atoms[at].edges.clear();
        if let Some(walked) = run.walk(&before, &graph) {
            let mut node = NodeBits::none(graph.count());
            node.insert(graph.position((0, at as u32)));
            let is_entered = !node.is_apart_from(&walked.visit.nodes);
            prop_assert_eq!(run.is_unchanged(&before, &now), !is_entered);
        }
    }
}
