//! The paths that a module's items use, with their lines.

use proc_macro2::TokenStream;
use syn::visit::{self, Visit};

use crate::code::Code;
use crate::modules::{Module, is_test, leaves};

pub(super) struct Use {
    pub(super) path: Vec<String>,
    pub(super) is_glob: bool,
    pub(super) line: usize,
}

/// The paths in `use` declarations, code and macro calls of a module, without its children and its tests.
pub(super) fn of(module: &Module) -> Vec<Use> {
    let mut uses = Uses(Vec::new());
    module.items.iter().for_each(|item| uses.visit_item(item));
    uses.0
}

struct Uses(Vec<Use>);

impl Uses {
    /// Paths among tokens that syn does not parse: names with `::` between them.
    fn push_tokens(&mut self, tokens: &TokenStream) {
        let code = Code::of(tokens.clone());
        let is_joined = |at: usize| code.text(at) == ":" && code.text(at + 1) == ":";
        let mut at = 0;
        while at < code.tokens.len() {
            let begins = code.tokens[at].is_ident() && (at < 2 || !is_joined(at - 2));
            let mut path = vec![code.text(at).to_owned()];
            let line = code.tokens[at].line;
            at += 1;
            while begins && is_joined(at) && code.tokens.get(at + 2).is_some_and(|token| token.is_ident()) {
                path.push(code.text(at + 2).to_owned());
                at += 3;
            }
            if path.len() > 1 {
                self.0.push(Use { path, is_glob: false, line });
            }
        }
    }
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            let uses = leaves(item).into_iter();
            self.0.extend(uses.map(|leaf| Use { path: leaf.path, is_glob: leaf.name.is_none(), line: leaf.line }));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(first) = path.segments.first() {
            let line = first.ident.span().start().line;
            let segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.0.push(Use { path: segments, is_glob: false, line });
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        self.push_tokens(&call.tokens);
    }

    // A module inside a function would be a node of its own; none is.
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_test(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !is_test(&local.attrs) {
            visit::visit_local(self, local);
        }
    }
}
