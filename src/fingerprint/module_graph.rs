//! The modules of a running program, with all that walks through them look up in them: it is found
//! out once for any number of walks.
//!
//! In: the modules, in the order in which the dynamic loader searches them. Out: [`ModuleGraph`].

use crate::elf::dynamic::DynamicSymbol;
use crate::model::manifest::{Edge, Export, Manifest, Node};
use crate::model::{AtomKind, Hash};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A module of a running program, in the order in which the dynamic loader searches them.
#[derive(Clone, Copy)]
pub enum Module<'m, 'a> {
    /// Built with Tasting: the walk goes through it.
    Known(&'m Manifest<'a>),
    /// The same, opened while the program ran: by whom, and in whose sight, is not known. All that
    /// any module exports counts.
    Late(&'m Manifest<'a>),
    /// Anything else counts by its content. `symbols` are those that it defines or imports; it may
    /// also look symbols up by names that it computes.
    Foreign { content: Hash, symbols: &'m [DynamicSymbol<'a>], finds_by_name: bool },
}

/// The mark of an import that was not met yet.
pub const IMPORT: u32 = u32::MAX;

/// A node in its module.
pub type Place = (u32, u32);

/// For each known module a number for each node.
pub type Numbers = Vec<Vec<u32>>;

/// The symbols that known modules offer: by which module, and which of its exports.
type Offers<'m> = FxHashMap<&'m [u8], (u32, Range<usize>)>;

/// Modules that walks go through.
pub struct ModuleGraph<'m, 'a> {
    pub modules: Vec<Module<'m, 'a>>,
    /// For each known module: where each node's edges start.
    pub starts: Numbers,
    /// Which module offers a symbol first, and where.
    pub offers: Offers<'m>,
    /// Imports that no module has, sorted.
    pub missing: Vec<&'m [u8]>,
    /// The versions of all symbols that some module wants and another one has.
    pub versions: BTreeSet<(&'m str, &'m str)>,
    /// Symbols that modules without a manifest take from modules with one, sorted.
    pub foreign_uses: Vec<&'m [u8]>,
    /// Whatever is executed, symbols are found by names that nobody knows.
    pub finds_by_name: bool,
    pub has_resolvers: bool,
    /// How many nodes there are in front of each module's, and at last in all.
    positions: Vec<usize>,
    /// No node has a number yet.
    unnumbered: Numbers,
    /// The same, left by walks that have ended.
    spare: Mutex<Vec<Numbers>>,
}

impl<'m, 'a> ModuleGraph<'m, 'a> {
    pub fn new(modules: Vec<Module<'m, 'a>>) -> Self {
        let manifests = || modules.iter().map(manifest);
        let starts =
            manifests().map(|manifest| manifest.map(Manifest::edge_starts).unwrap_or_default());
        let unnumbered: Numbers =
            manifests().map(|manifest| manifest.map(unnumbered).unwrap_or_default()).collect();
        let mut positions = vec![0];
        for numbers in &unnumbered {
            positions.push(positions.last().unwrap_or(&0) + numbers.len());
        }
        let is_resolver = |node: &Node| node.kind == AtomKind::Resolver;
        let has_names = |module: &Module| {
            matches!(module, Module::Late(_) | Module::Foreign { finds_by_name: true, .. })
        };
        let offers = offers(&modules);
        let (missing, versions) = wanted(&modules, &offers);
        ModuleGraph {
            starts: starts.collect(),
            positions,
            unnumbered,
            missing,
            versions,
            foreign_uses: foreign_uses(&modules, &offers),
            finds_by_name: modules.iter().any(has_names),
            has_resolvers: manifests()
                .flatten()
                .any(|manifest| manifest.nodes.iter().any(is_resolver)),
            offers,
            spare: Mutex::default(),
            modules,
        }
    }

    pub fn known(&self, module: u32) -> Option<&'m Manifest<'a>> {
        self.modules.get(module as usize).and_then(manifest)
    }

    /// A node with its references.
    pub fn node(&self, (module, node): Place) -> Option<(&'m Node<'a>, &'m [Edge])> {
        let manifest = self.known(module)?;
        let starts = &self.starts[module as usize];
        let range = starts[node as usize] as usize..starts[node as usize + 1] as usize;
        Some((manifest.nodes.get(node as usize)?, manifest.edges.get(range).unwrap_or_default()))
    }

    /// What the loader binds to a name: the module, and every version of the symbol that it has.
    pub fn offered(&self, name: &[u8]) -> Option<(u32, &'m [Export<'a>])> {
        let (module, exports) = self.offers.get(name)?;
        Some((*module, self.known(*module)?.exports.get(exports.clone()).unwrap_or_default()))
    }

    /// How many nodes there are.
    pub fn count(&self) -> usize {
        self.positions.last().copied().unwrap_or_default()
    }

    /// Where a node stands among all of them.
    pub fn position(&self, (module, node): Place) -> usize {
        self.positions[module as usize] + node as usize
    }

    /// Numbers of nodes that have none yet.
    pub fn numbers(&self) -> Numbers {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| self.unnumbered.clone())
    }

    /// Takes numbers back, of which these nodes have one.
    pub fn give_back(&self, mut numbers: Numbers, numbered: &[Place]) {
        if numbered.is_empty() {
            return;
        }
        for &(module, node) in numbered {
            let (module, node) = (module as usize, node as usize);
            numbers[module][node] = self.unnumbered[module][node];
        }
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(numbers);
    }
}

fn manifest<'m, 'a>(module: &Module<'m, 'a>) -> Option<&'m Manifest<'a>> {
    match module {
        Module::Known(manifest) | Module::Late(manifest) => Some(manifest),
        Module::Foreign { .. } => None,
    }
}

fn unnumbered(manifest: &Manifest) -> Vec<u32> {
    manifest
        .nodes
        .iter()
        .map(|node| if node.kind == AtomKind::Import { IMPORT } else { 0 })
        .collect()
}

/// Which symbols the known modules offer: the first of them in order wins, as it does for the
/// dynamic loader. A foreign module before it may win in truth; its content counts anyway.
fn offers<'m>(modules: &[Module<'m, '_>]) -> Offers<'m> {
    let mut offers = Offers::default();
    for (index, manifest) in
        modules.iter().enumerate().filter_map(|(index, module)| Some((index, manifest(module)?)))
    {
        for (at, export) in manifest.exports.iter().enumerate() {
            let (module, exports) =
                offers.entry(export.name.as_bytes()).or_insert((index as u32, at..at));
            // The exports are sorted by name, so that the versions of one stand together.
            if *module == index as u32 && exports.end == at {
                exports.end = at + 1;
            }
        }
    }
    offers
}

/// Imports that no module has, and the versions of those that another one has. (A module by itself
/// wants all that its libraries bring.)
fn wanted<'m>(
    modules: &[Module<'m, '_>],
    offers: &Offers<'m>,
) -> (Vec<&'m [u8]>, BTreeSet<(&'m str, &'m str)>) {
    let (mut missing, mut versions) = (FxHashSet::default(), BTreeSet::new());
    if modules.len() == 1 {
        return Default::default();
    }
    let nodes = modules.iter().filter_map(manifest).flat_map(|manifest| &manifest.nodes);
    for name in nodes.filter(|node| node.kind == AtomKind::Import).map(|node| node.name.as_bytes())
    {
        let Some((module, exports)) = offers.get(name) else {
            missing.insert(name);
            continue;
        };
        let manifest = modules.get(*module as usize).and_then(manifest);
        let offered =
            manifest.and_then(|manifest| manifest.exports.get(exports.clone())).unwrap_or_default();
        let offered = offered.iter().map(|export| (export.name, export.version));
        versions.extend(offered.filter(|(_, version)| !version.is_empty()));
    }
    for module in modules {
        let Module::Foreign { symbols, .. } = module else { continue };
        symbols.iter().for_each(|symbol| _ = missing.remove(symbol.name));
    }
    let mut missing: Vec<&[u8]> = missing.into_iter().collect();
    missing.sort_unstable();
    (missing, versions)
}

fn foreign_uses<'m>(modules: &[Module<'m, '_>], offers: &Offers<'m>) -> Vec<&'m [u8]> {
    let mut used: Vec<&[u8]> = Vec::new();
    for module in modules {
        let Module::Foreign { symbols, .. } = module else { continue };
        used.extend(
            symbols.iter().map(|symbol| symbol.name).filter(|name| offers.contains_key(name)),
        );
    }
    used.sort_unstable();
    used.dedup();
    used
}
