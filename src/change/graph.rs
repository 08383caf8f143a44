//! The atoms of a program and of its libraries as one graph, in which what the dynamic loader binds
//! leads on into the module that offers it.
//!
//! In: manifests, the program's first. Out: nodes by number, their targets, and the shortest ways
//! to them.

use crate::model::AtomKind;
use crate::model::manifest::{Edge, Manifest, Node};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// One program with its libraries. Its nodes are numbered through all modules.
pub struct Graph<'m, 'a> {
    nodes: Vec<(&'m Node<'a>, &'m Manifest<'a>)>,
    /// The number of the first node of each module.
    first: Vec<usize>,
    /// The references of each node, as numbers and offsets.
    targets: Vec<Vec<(usize, i64)>>,
    roots: Vec<usize>,
    /// What can be found by name: in the program itself, and in its libraries.
    exports: [Vec<usize>; 2],
    is_library: bool,
}

/// Where each node was met first, on the shortest way from a start.
pub struct Reach {
    from: Vec<Option<usize>>,
}

impl<'m, 'a> Graph<'m, 'a> {
    pub fn new(modules: &'m [Manifest<'a>]) -> Self {
        let mut graph = Graph {
            nodes: Vec::new(),
            first: Vec::new(),
            targets: Vec::new(),
            roots: Vec::new(),
            exports: Default::default(),
            is_library: modules.first().is_some_and(|program| program.shared_library),
        };
        let mut offers: FxHashMap<&str, Vec<(usize, i64)>> = FxHashMap::default();
        for (index, module) in modules.iter().enumerate() {
            let exports = graph.add(module);
            graph.exports[usize::from(index > 0)]
                .extend(exports.iter().map(|(_, (node, _))| *node));
            let mut own: FxHashMap<&str, Vec<(usize, i64)>> = FxHashMap::default();
            exports
                .into_iter()
                .for_each(|(name, target)| own.entry(name).or_default().push(target));
            // The first module that offers a name wins, with all its versions of it.
            own.into_iter().for_each(|(name, targets)| _ = offers.entry(name).or_insert(targets));
        }
        graph.bind(&offers);
        graph
    }

    /// Adds a module; gives what it offers.
    fn add(&mut self, module: &'m Manifest<'a>) -> Vec<(&'a str, (usize, i64))> {
        let first = self.nodes.len();
        self.first.push(first);
        let target = |edge: &Edge| (first + edge.node as usize, edge.offset);
        let starts = module.edge_starts();
        for (index, node) in module.nodes.iter().enumerate() {
            let edges = module
                .edges
                .get(starts[index] as usize..starts[index + 1] as usize)
                .unwrap_or_default();
            self.targets.push(edges.iter().map(target).collect());
            self.nodes.push((node, module));
        }
        self.roots.extend(module.roots.iter().map(|root| target(root).0));
        module.exports.iter().map(|export| (export.name, target(&export.edge))).collect()
    }

    /// Lets imports lead to what is offered under their names.
    fn bind(&mut self, offers: &FxHashMap<&str, Vec<(usize, i64)>>) {
        for ((node, _), targets) in self.nodes.iter().zip(&mut self.targets) {
            if node.kind == AtomKind::Import {
                targets.extend(offers.get(&*node.name).into_iter().flatten());
            }
        }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn node(&self, number: usize) -> &'m Node<'a> {
        self.nodes[number].0
    }

    /// The object or archive member that a node comes from.
    pub fn object(&self, number: usize) -> Option<&'m str> {
        let (node, module) = self.nodes[number];
        module.inputs.get((node.input as usize).checked_sub(1)?).map(|input| &**input)
    }

    /// The number of the module that a node is in; the program's is 0.
    pub fn module(&self, number: usize) -> usize {
        self.first.partition_point(|first| *first <= number).saturating_sub(1)
    }

    /// The source file and line of a node, where there is debug information.
    pub fn source(&self, number: usize) -> Option<(&'m str, u32)> {
        let (node, module) = self.nodes[number];
        let file = module.files.get(node.file as usize).filter(|_| node.line > 0)?;
        Some((file, node.line))
    }

    pub fn targets(&self, number: usize) -> &[(usize, i64)] {
        &self.targets[number]
    }

    /// Where the program starts, and what can be found in it by name. With an entry that the
    /// project names, at that function instead of at `_start`.
    pub fn starts(&self, entry: Option<&str>) -> Vec<usize> {
        let named = |entry| (0..self.len()).filter(move |&number| self.node(number).name == entry);
        let skipped = usize::from(entry.is_some() && !self.is_library);
        let mut starts: Vec<usize> = entry.into_iter().flat_map(named).collect();
        starts.extend(self.roots.iter().skip(skipped));
        starts.extend(entry.is_none().then_some(&self.exports[0]).into_iter().flatten());
        starts
    }

    /// What is exported by any module: callers without a manifest, and those who look for names,
    /// start there.
    pub fn exported(&self) -> impl Iterator<Item = usize> {
        self.exports.iter().flatten().copied()
    }

    /// All that is reached, breadth first.
    pub fn reach(&self, starts: impl IntoIterator<Item = usize>) -> Reach {
        let mut from = vec![None; self.len()];
        let mut pending = VecDeque::new();
        for start in starts {
            if from[start].is_none() {
                from[start] = Some(start);
                pending.push_back(start);
            }
        }
        while let Some(number) = pending.pop_front() {
            for &(target, _) in self.targets(number) {
                if from[target].is_none() {
                    from[target] = Some(number);
                    pending.push_back(target);
                }
            }
        }
        Reach { from }
    }
}

impl Reach {
    pub fn contains(&self, number: usize) -> bool {
        self.from[number].is_some()
    }

    /// The nodes from a start to this one.
    pub fn chain(&self, number: usize) -> Vec<usize> {
        let mut chain = vec![number];
        let mut at = number;
        while let Some(before) = self.from[at].filter(|before| *before != at) {
            chain.push(before);
            at = before;
        }
        chain.reverse();
        chain
    }
}
