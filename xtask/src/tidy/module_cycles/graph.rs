//! The graph of a crate's modules and its cycles.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::uses;
use crate::modules::{Crate, Target};

/// Modules that have files of their own, and which of them use which.
pub(super) struct Graph<'a> {
    modules: &'a Crate,
    /// From the module that uses to the one that is used, with the first use.
    edges: BTreeMap<usize, BTreeMap<usize, Place>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: String,
    pub(super) line: usize,
}

/// Modules each of which uses, by way of others, itself.
pub(super) struct Cycle {
    /// Their names.
    pub(super) modules: Vec<String>,
    /// One of the shortest loops among them: each use, and the module that it uses.
    pub(super) shortest: Vec<(Place, String)>,
}

impl Cycle {
    /// `a → b → a`
    pub(super) fn shown(&self) -> String {
        let names = self.shortest.iter().map(|(_, to)| to.as_str());
        let last = self.shortest.last().map(|(_, to)| to.as_str());
        last.into_iter().chain(names).collect::<Vec<_>>().join(" → ")
    }
}

impl<'a> Graph<'a> {
    pub(super) fn of(modules: &'a Crate) -> Self {
        let mut graph = Self { modules, edges: BTreeMap::new() };
        for (from, module) in modules.modules.iter().enumerate() {
            for used in uses::of(module) {
                let to = match modules.resolve(from, &used.path) {
                    Some(Target::Item(to)) => to,
                    Some(Target::Module(to)) if used.is_glob => to,
                    _ => continue,
                };
                graph.note(from, to, Place { file: module.file.clone(), line: used.line });
            }
        }
        graph
    }

    fn note(&mut self, from: usize, to: usize, place: Place) {
        let file_of = |module: usize| self.modules.modules[module].file_module;
        let (from, to) = (file_of(from), file_of(to));
        let (a, b) = (&self.modules.modules[from].path, &self.modules.modules[to].path);
        if !a.starts_with(b) && !b.starts_with(a) {
            self.edges.entry(from).or_default().entry(to).or_insert(place);
        }
    }

    /// How many modules have a file of their own.
    pub(super) fn modules(&self) -> usize {
        self.modules.modules.iter().enumerate().filter(|(index, module)| module.file_module == *index).count()
    }

    pub(super) fn edges(&self) -> usize {
        self.edges.values().map(BTreeMap::len).sum()
    }

    /// The sets of modules that use each other, the largest first.
    pub(super) fn cycles(&self) -> Vec<Cycle> {
        let reached: BTreeMap<usize, BTreeSet<usize>> =
            self.edges.keys().map(|from| (*from, self.reached(*from))).collect();
        let mut left: BTreeSet<usize> =
            reached.iter().filter(|(from, to)| to.contains(from)).map(|(from, _)| *from).collect();
        let mut cycles = Vec::new();
        while let Some(first) = left.first().copied() {
            let group: BTreeSet<usize> = left
                .iter()
                .copied()
                .filter(|other| reached[&first].contains(other) && reached[other].contains(&first))
                .collect();
            left.retain(|module| !group.contains(module));
            let loops = group.iter().filter_map(|start| self.shortest_loop(*start));
            let shortest = loops.min_by_key(Vec::len).unwrap_or_default();
            let modules = group.iter().map(|module| self.modules.modules[*module].name()).collect();
            cycles.push(Cycle { modules, shortest });
        }
        cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.modules.len()));
        cycles
    }

    fn used_by(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        self.edges.get(&from).into_iter().flatten().map(|(to, _)| *to)
    }

    /// All modules that `from` uses, directly or by way of others.
    fn reached(&self, from: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(next) = open.pop() {
            open.extend(self.used_by(next).filter(|to| reached.insert(*to)));
        }
        reached
    }

    /// The shortest way from a module back to itself.
    fn shortest_loop(&self, start: usize) -> Option<Vec<(Place, String)>> {
        let mut came_from = BTreeMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(next) = open.pop_front() {
            for to in self.used_by(next) {
                if let std::collections::btree_map::Entry::Vacant(entry) = came_from.entry(to) {
                    entry.insert(next);
                    open.push_back(to);
                }
            }
        }
        let mut way = Vec::new();
        let mut at = start;
        loop {
            let from = *came_from.get(&at)?;
            way.push((self.edges[&from][&at].clone(), self.modules.modules[at].name()));
            at = from;
            if at == start {
                way.reverse();
                return Some(way);
            }
        }
    }
}
