//! Resolves a path to the module that defines what it names, through imports and re-exports.

use std::collections::BTreeSet;

use super::{Crate, Name};

/// What a path names, inside its own crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// An item, defined in this module.
    Item(usize),
    Module(usize),
}

/// The names that are being looked up, so that imports that name each other end.
type Seen = BTreeSet<(usize, String, bool)>;

impl Crate {
    /// What `segments` names, read in the module `from`; none if it is nothing of this crate.
    pub(crate) fn resolve(&self, from: usize, segments: &[String]) -> Option<Target> {
        self.resolve_unseen(from, segments, &mut Seen::new())
    }

    fn resolve_unseen(&self, from: usize, segments: &[String], seen: &mut Seen) -> Option<Target> {
        let mut at = from;
        for (place, segment) in segments.iter().enumerate() {
            at = match segment.as_str() {
                "crate" => 0,
                "self" => at,
                "super" => self.modules[at].parent?,
                name => match self.lookup(at, name, place + 1 == segments.len(), seen)? {
                    Target::Module(module) => module,
                    item @ Target::Item(_) => return Some(item),
                },
            };
        }
        Some(Target::Module(at))
    }

    /// A name in a module's scope. The last name of a path is an item if there is one, all others are modules if there is one.
    fn lookup(&self, at: usize, name: &str, is_last: bool, seen: &mut Seen) -> Option<Target> {
        if !seen.insert((at, name.to_owned(), is_last)) {
            return None;
        }
        let module = &self.modules[at];
        let named = module.names.get(name).into_iter().flatten();
        let mut found: Vec<Target> = named.filter_map(|named| self.target(at, named, seen)).collect();
        if at == 0 {
            found.extend(self.exported_macros.get(name).map(|module| Target::Item(*module)));
        }
        if found.is_empty() && !module.names.contains_key(name) {
            found.extend(module.globs.iter().find_map(|glob| match self.resolve_unseen(at, glob, seen)? {
                Target::Module(inner) => self.lookup(inner, name, is_last, seen),
                Target::Item(_) => None,
            }));
        }
        let is_wanted = |target: &&Target| matches!(target, Target::Item(_)) == is_last;
        found.iter().find(is_wanted).or_else(|| found.first()).copied()
    }

    fn target(&self, at: usize, name: &Name, seen: &mut Seen) -> Option<Target> {
        match name {
            Name::Item => Some(Target::Item(at)),
            Name::Module(module) => Some(Target::Module(*module)),
            Name::Import(path) => self.resolve_unseen(at, path, seen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    /// The module that defines what a path names.
    fn defines(files: &[(&str, &str)], from: &str, path: &str) -> Option<String> {
        let tree = Tree::of(files);
        let loaded = Crate::load(&tree, "a").unwrap().unwrap();
        let from = loaded.modules.iter().position(|module| module.name() == from).unwrap();
        let segments: Vec<String> = path.split("::").map(str::to_owned).collect();
        loaded.resolve(from, &segments).map(|target| match target {
            Target::Item(module) => loaded.modules[module].name(),
            Target::Module(module) => format!("mod {}", loaded.modules[module].name()),
        })
    }

    const FILES: &[(&str, &str)] = &[
        ("a/src/lib.rs", "mod foo; mod bar; pub use foo::Foo; pub use bar::*; use std::fmt; mod time; use time::time;"),
        ("a/src/foo.rs", "pub struct Foo; mod inner { pub struct Deep; } pub use inner::Deep;"),
        ("a/src/bar/mod.rs", "pub enum Bar { One } mod left; mod right; use left::Left;"),
        ("a/src/bar/left.rs", "pub struct Left;"),
        ("a/src/bar/right.rs", "use super::Left;"),
        ("a/src/time.rs", "pub fn time() {} #[macro_export] macro_rules! tell { () => {} }"),
    ];

    #[test]
    fn path_through_reexports_resolves_to_the_defining_module() {
        let defines = |from: &str, path: &str| defines(FILES, from, path);
        assert_eq!(defines("bar", "crate::Foo").as_deref(), Some("foo"));
        assert_eq!(defines("foo", "crate::Bar::One").as_deref(), Some("bar"));
        assert_eq!(defines("bar::right", "super::Left").as_deref(), Some("bar::left"));
        assert_eq!(defines("bar", "crate::foo::Deep").as_deref(), Some("foo::inner"));
        assert_eq!(defines("bar", "crate::time").as_deref(), Some("time"));
        assert_eq!(defines("bar", "crate::time::time").as_deref(), Some("time"));
        assert_eq!(defines("bar", "crate::foo").as_deref(), Some("mod foo"));
        assert_eq!(defines("bar", "crate::tell").as_deref(), Some("time"));
    }

    #[test]
    fn path_into_another_crate_resolves_to_nothing() {
        assert_eq!(defines(FILES, "crate", "fmt::Debug"), None);
        assert_eq!(defines(FILES, "foo", "serde::Serialize"), None);
    }
}
