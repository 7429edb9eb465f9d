//! Reads the modules of a crate, following its `mod` declarations from `lib.rs` or `main.rs` on.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow};

use super::{Crate, Module, Name, is_test, leaves};
use crate::tree::Tree;

impl Crate {
    /// Reads the crate in `folder`; none if the tree holds no such crate.
    pub(crate) fn load(tree: &Tree, folder: &str) -> Result<Option<Self>> {
        let roots = ["lib.rs", "main.rs"].map(|root| format!("{folder}/src/{root}"));
        let Some(root) = roots.iter().find(|root| tree.get(root).is_some()) else { return Ok(None) };
        let mut loaded = Self { modules: Vec::new(), exported_macros: BTreeMap::new() };
        loaded.read_file(tree, root, &format!("{folder}/src"), Vec::new(), None)?;
        Ok(Some(loaded))
    }

    /// Reads a module that has a file of its own. The files of its children are in `folder`.
    fn read_file(
        &mut self,
        tree: &Tree,
        file: &str,
        folder: &str,
        path: Vec<String>,
        parent: Option<usize>,
    ) -> Result<usize> {
        let source = tree.get(file).with_context(|| format!("{file} is missing"))?;
        let parsed = syn::parse_file(&source.text).map_err(|error| anyhow!("cannot parse {file}: {error}"))?;
        let index = self.modules.len();
        self.push(file, index, path, parent);
        self.read_items(tree, index, folder, parsed.items)?;
        Ok(index)
    }

    fn push(&mut self, file: &str, file_module: usize, path: Vec<String>, parent: Option<usize>) {
        let (names, globs, items) = (BTreeMap::new(), Vec::new(), Vec::new());
        self.modules.push(Module { path, file: file.to_owned(), file_module, items, parent, names, globs });
    }

    fn read_items(&mut self, tree: &Tree, index: usize, folder: &str, items: Vec<syn::Item>) -> Result<()> {
        for item in items {
            if is_test(attributes(&item)) {
                continue;
            }
            match item {
                syn::Item::Mod(module) => self.read_child(tree, index, folder, module)?,
                item => {
                    self.note_names(index, &item);
                    self.modules[index].items.push(item);
                }
            }
        }
        Ok(())
    }

    fn read_child(&mut self, tree: &Tree, index: usize, folder: &str, module: syn::ItemMod) -> Result<()> {
        let name = module.ident.to_string();
        let mut path = self.modules[index].path.clone();
        path.push(name.clone());
        let inner = format!("{folder}/{name}");
        let child = match module.content {
            Some((_, items)) => {
                let child = self.modules.len();
                let (file, file_module) = (self.modules[index].file.clone(), self.modules[index].file_module);
                self.push(&file, file_module, path, Some(index));
                self.read_items(tree, child, &inner, items)?;
                child
            }
            None => {
                let files = [format!("{inner}.rs"), format!("{inner}/mod.rs")];
                let file = files.iter().find(|file| tree.get(file).is_some());
                let file = file.with_context(|| format!("{} declares `mod {name}`, which has no file", files[0]))?;
                self.read_file(tree, file, &inner, path, Some(index))?
            }
        };
        self.modules[index].names.entry(name).or_default().push(Name::Module(child));
        Ok(())
    }

    fn note_names(&mut self, index: usize, item: &syn::Item) {
        let module = &mut self.modules[index];
        match item {
            syn::Item::Use(item) => {
                for leaf in leaves(item) {
                    match leaf.name {
                        Some(name) => module.names.entry(name).or_default().push(Name::Import(leaf.path)),
                        None => module.globs.push(leaf.path),
                    }
                }
            }
            syn::Item::Macro(item) => {
                let Some(name) = item.ident.as_ref().map(syn::Ident::to_string) else { return };
                if item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) {
                    self.exported_macros.insert(name.clone(), index);
                }
                module.names.entry(name).or_default().push(Name::Item);
            }
            item => {
                if let Some(name) = ident(item) {
                    module.names.entry(name.to_string()).or_default().push(Name::Item);
                }
            }
        }
    }
}

/// The name that an item defines.
fn ident(item: &syn::Item) -> Option<&syn::Ident> {
    match item {
        syn::Item::Const(item) => Some(&item.ident),
        syn::Item::Enum(item) => Some(&item.ident),
        syn::Item::Fn(item) => Some(&item.sig.ident),
        syn::Item::Static(item) => Some(&item.ident),
        syn::Item::Struct(item) => Some(&item.ident),
        syn::Item::Trait(item) => Some(&item.ident),
        syn::Item::TraitAlias(item) => Some(&item.ident),
        syn::Item::Type(item) => Some(&item.ident),
        syn::Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}

/// The attributes of an item.
pub(super) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::ExternCrate(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::ForeignMod(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::TraitAlias(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Union(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
