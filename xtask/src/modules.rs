//! The modules of one crate, as `syn` parses them, and what a path in one of them resolves to.
//!
//! Test code is left out: items under `#[cfg(test)]`, `#[cfg(any(test, …))]` or `#[test]`.

mod load;
mod resolve;

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};

pub(crate) use self::resolve::Target;

/// The modules of a crate. The first one is its root.
pub(crate) struct Crate {
    pub(crate) modules: Vec<Module>,
    /// Macros under `#[macro_export]`, with the module that defines each.
    exported_macros: BTreeMap<String, usize>,
}

pub(crate) struct Module {
    /// The names from the crate's root to this module; empty for the root.
    pub(crate) path: Vec<String>,
    /// The path of its file in the tree.
    pub(crate) file: String,
    /// The index of the module that its file stands for. Differs from its own for a module written inside another one.
    pub(crate) file_module: usize,
    /// The items that are no test code.
    pub(crate) items: Vec<syn::Item>,
    parent: Option<usize>,
    names: BTreeMap<String, Vec<Name>>,
    /// The modules that `use …::*` names.
    globs: Vec<Vec<String>>,
}

/// What a name in a module's scope stands for.
enum Name {
    Item,
    Module(usize),
    Import(Vec<String>),
}

impl Module {
    /// `a::b`, or `crate` for the root.
    pub(crate) fn name(&self) -> String {
        if self.path.is_empty() { "crate".to_owned() } else { self.path.join("::") }
    }
}

/// One leaf of a `use` declaration.
pub(crate) struct Leaf {
    pub(crate) path: Vec<String>,
    /// The name it brings into scope; none for a glob.
    pub(crate) name: Option<String>,
    pub(crate) line: usize,
}

/// The leaves of a `use` declaration: `use a::{b, c as d, e::*}` has three.
pub(crate) fn leaves(item: &syn::ItemUse) -> Vec<Leaf> {
    let mut found = Vec::new();
    push_leaves(&item.tree, &mut Vec::new(), &mut found);
    found
}

fn push_leaves(tree: &syn::UseTree, before: &mut Vec<String>, found: &mut Vec<Leaf>) {
    match tree {
        syn::UseTree::Path(path) => {
            before.push(path.ident.to_string());
            push_leaves(&path.tree, before, found);
            before.pop();
        }
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| push_leaves(tree, before, found)),
        syn::UseTree::Name(name) => found.push(leaf(before, &name.ident, &name.ident)),
        syn::UseTree::Rename(rename) => found.push(leaf(before, &rename.ident, &rename.rename)),
        syn::UseTree::Glob(glob) => {
            let line = glob.star_token.spans[0].start().line;
            found.push(Leaf { path: before.clone(), name: None, line });
        }
    }
}

fn leaf(before: &[String], named: &syn::Ident, name: &syn::Ident) -> Leaf {
    let mut path = before.to_vec();
    let mut name = name.to_string();
    if named == "self" {
        // `use a::{self}` brings `a` into scope.
        if name == "self" {
            name = path.last().cloned().unwrap_or_default();
        }
    } else {
        path.push(named.to_string());
    }
    Leaf { path, name: Some(name), line: named.span().start().line }
}

/// Whether attributes make an item test code: `#[test]`, or a `#[cfg(…)]` that names `test` outside of `not(…)`.
pub(crate) fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => names_test(list.tokens.clone()),
        meta => meta.path().segments.last().is_some_and(|last| last.ident == "test"),
    })
}

fn names_test(tokens: TokenStream) -> bool {
    let mut is_negated = false;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if ident == "test" || ident == "doctest" => return true,
            TokenTree::Ident(ident) => is_negated = ident == "not",
            TokenTree::Group(group) if !is_negated && names_test(group.stream()) => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_declaration_has_one_leaf_for_each_name() {
        let item: syn::ItemUse = syn::parse_str("use a::{self, b, c as d, e::*};").unwrap();
        let shown: Vec<String> = leaves(&item)
            .iter()
            .map(|leaf| format!("{} as {}", leaf.path.join("::"), leaf.name.as_deref().unwrap_or("*")))
            .collect();
        assert_eq!(shown, ["a as a", "a::b as b", "a::c as d", "a::e as *"]);
    }

    #[test]
    fn test_code_is_recognised_by_its_attributes() {
        let is_test =
            |text: &str| is_test(&syn::parse_str::<syn::ItemFn>(&format!("{text} fn a() {{}}")).unwrap().attrs);
        for text in ["#[test]", "#[cfg(test)]", "#[cfg(any(test, feature = \"x\"))]", "#[tokio::test]"] {
            assert!(is_test(text), "{text}");
        }
        for text in ["", "#[cfg(unix)]", "#[cfg(not(test))]", "#[cfg(feature = \"test\")]"] {
            assert!(!is_test(text), "{text}");
        }
    }
}
