//! The types of a crate and how many methods their inherent `impl` blocks have.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

use crate::modules::{Target, is_test};
use crate::tidy::crates::Checked;

/// A type with methods.
pub(super) struct Owner {
    pub(super) name: String,
    pub(super) file: String,
    /// Of its first `impl` block.
    pub(super) line: usize,
    pub(super) methods: usize,
}

/// All types that have methods, those with the most first.
pub(super) fn of(checked: &Checked) -> Vec<Owner> {
    // By the module that defines a type, because two types of one crate may share a name.
    let mut owners: BTreeMap<(usize, String), Owner> = BTreeMap::new();
    for (index, module) in checked.modules.modules.iter().enumerate() {
        let mut blocks = Blocks(Vec::new());
        module.items.iter().for_each(|item| blocks.visit_item(item));
        for block in blocks.0 {
            let definition = match checked.modules.resolve(index, &block.path) {
                Some(Target::Item(definition)) => definition,
                _ => index,
            };
            let name = block.path.last().cloned().unwrap_or_default();
            let owner = owners.entry((definition, name.clone())).or_insert_with(|| Owner {
                name,
                file: module.file.clone(),
                line: block.line,
                methods: 0,
            });
            owner.methods += block.methods;
        }
    }
    let mut owners: Vec<Owner> = owners.into_values().collect();
    owners.sort_by_key(|owner| std::cmp::Reverse(owner.methods));
    owners
}

struct Block {
    path: Vec<String>,
    line: usize,
    methods: usize,
}

struct Blocks(Vec<Block>);

impl<'ast> Visit<'ast> for Blocks {
    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        if block.trait_.is_none()
            && !is_test(&block.attrs)
            && let syn::Type::Path(owner) = &*block.self_ty
        {
            let is_method = |item: &&syn::ImplItem| matches!(item, syn::ImplItem::Fn(item) if !is_test(&item.attrs));
            self.0.push(Block {
                path: owner.path.segments.iter().map(|segment| segment.ident.to_string()).collect(),
                line: block.impl_token.span.start().line,
                methods: block.items.iter().filter(is_method).count(),
            });
        }
        visit::visit_item_impl(self, block);
    }
}
