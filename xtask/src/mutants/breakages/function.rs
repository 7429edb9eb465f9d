//! Finds a function or a constant by the end of its path, wherever it has been moved.

use std::ops::Range;

use anyhow::{Result, bail};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::modules::{Crate, is_test};

/// The place of the body of a function, or of the value of a constant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: String,
    /// The bytes between its braces, or those of the value.
    pub(super) body: Range<usize>,
}

/// The function or constant of a crate whose path ends in `wanted`. A path is the modules, the type if it is a method, and the name; the methods of a trait
/// are also found under `Type as Trait::name`.
pub(super) fn find(modules: &Crate, folder: &str, wanted: &str) -> Result<Place> {
    let mut found = Vec::new();
    for module in &modules.modules {
        let mut closures = Bodies { owners: vec![module.path.join("::")], file: &module.file, found: &mut found };
        module.items.iter().for_each(|item| closures.visit_item(item));
    }
    let ends = |path: &str| path == wanted || path.strip_suffix(wanted).is_some_and(|before| before.ends_with("::"));
    let mut fitting: Vec<(Vec<String>, Place)> =
        found.into_iter().filter(|(paths, _)| paths.iter().any(|path| ends(path))).collect();
    match fitting.len() {
        1 => Ok(fitting.remove(0).1),
        0 => bail!("crate {folder} has no function or constant `{wanted}` any more: name the one that took its place"),
        _ => {
            let paths: Vec<String> = fitting.iter().map(|(paths, _)| paths.join(" or ")).collect();
            bail!(
                "crate {folder} has several functions or constants `{wanted}`, name one of them in full: {}",
                paths.join(", ")
            )
        }
    }
}

struct Bodies<'a> {
    /// The paths of what holds the function.
    owners: Vec<String>,
    file: &'a str,
    found: &'a mut Vec<(Vec<String>, Place)>,
}

impl Bodies<'_> {
    fn push(&mut self, sig: &syn::Signature, block: &syn::Block) {
        let paths = self.owners.iter().map(|owner| format!("{owner}::{}", sig.ident)).collect();
        let braces = &block.brace_token.span;
        let body = braces.open().byte_range().end..braces.close().byte_range().start;
        self.found.push((paths, Place { file: self.file.to_owned(), body }));
    }

    fn push_value(&mut self, name: &syn::Ident, value: &syn::Expr) {
        let paths = self.owners.iter().map(|owner| format!("{owner}::{name}")).collect();
        self.found.push((paths, Place { file: self.file.to_owned(), body: value.span().byte_range() }));
    }
}

impl<'ast> Visit<'ast> for Bodies<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            self.push(&item.sig, &item.block);
        }
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        if !is_test(&item.attrs) {
            self.push_value(&item.ident, &item.expr);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        let syn::Type::Path(owner) = &*block.self_ty else { return };
        let last = |path: &syn::Path| path.segments.last().map_or_else(String::new, |last| last.ident.to_string());
        let module = self.owners[0].clone();
        let owner = last(&owner.path);
        let mut owners = vec![format!("{module}::{owner}")];
        if let Some((_, of, _)) = &block.trait_ {
            owners.push(format!("{module}::{owner} as {}", last(of)));
        }
        let before = std::mem::replace(&mut self.owners, owners);
        visit::visit_item_impl(self, block);
        self.owners = before;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            self.push(&item.sig, &item.block);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = item.default.as_ref().filter(|_| !is_test(&item.attrs)) {
            self.push(&item.sig, block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn find(tree: &Tree, folder: &str, wanted: &str) -> Result<Place> {
        super::find(&Crate::load(tree, "crates/a").unwrap().unwrap(), folder, wanted)
    }

    fn tree() -> Tree {
        Tree::of(&[
            ("crates/a/src/lib.rs", "mod b; mod c;"),
            (
                "crates/a/src/b.rs",
                "const SQL: &str = \"DELETE\"; fn fence(é: u8) -> bool { é == 1 }\nstruct T; impl T { fn go(&self) { 1; } }",
            ),
            (
                "crates/a/src/c.rs",
                "struct T; impl T { fn go(&self) { 2; } } impl Clone for T { fn clone(&self) -> T { T } }",
            ),
        ])
    }

    #[test]
    fn body_is_found_wherever_the_function_stands() {
        let place = find(&tree(), "a", "fence").unwrap();
        let text = &tree().get("crates/a/src/b.rs").unwrap().text.clone();
        assert_eq!(&text[place.body.clone()], " é == 1 ");
        assert_eq!(find(&tree(), "a", "b::fence").unwrap(), place);
        assert_eq!(&text[find(&tree(), "a", "b::SQL").unwrap().body], "\"DELETE\"");
        assert_eq!(find(&tree(), "a", "c::T::go").unwrap().file, "crates/a/src/c.rs");
        assert_eq!(find(&tree(), "a", "T as Clone::clone").unwrap().file, "crates/a/src/c.rs");
    }

    #[test]
    fn function_that_is_gone_or_not_unique_is_an_error_that_says_so() {
        let error = |wanted| find(&tree(), "a", wanted).unwrap_err().to_string();
        assert_eq!(
            error("fences"),
            "crate a has no function or constant `fences` any more: name the one that took its place"
        );
        assert_eq!(
            error("T::go"),
            "crate a has several functions or constants `T::go`, name one of them in full: b::T::go, c::T::go"
        );
    }
}
