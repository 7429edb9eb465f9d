//! The functions of a crate and their lengths.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::modules::is_test;
use crate::tidy::crates::Checked;

pub(super) struct Function {
    pub(super) name: String,
    pub(super) file: String,
    /// The line of `fn`.
    pub(super) line: usize,
    /// From `fn` to the closing brace.
    pub(super) lines: usize,
    pub(super) is_table: bool,
}

/// A row of a table has at most this many lines.
const ROW: usize = 4;

/// All functions and methods that have a body and are no tests.
pub(super) fn of(checked: &Checked) -> Vec<Function> {
    let mut found = Vec::new();
    for module in &checked.modules.modules {
        let mut functions = Functions { file: &module.file, found: Vec::new() };
        module.items.iter().for_each(|item| functions.visit_item(item));
        found.append(&mut functions.found);
    }
    found
}

struct Functions<'a> {
    file: &'a str,
    found: Vec<Function>,
}

impl Functions<'_> {
    fn push(&mut self, sig: &syn::Signature, body: &syn::Block) {
        let line = sig.fn_token.span.start().line;
        self.found.push(Function {
            name: sig.ident.to_string(),
            file: self.file.to_owned(),
            line,
            lines: body.brace_token.span.close().end().line - line + 1,
            is_table: is_table(body),
        });
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            self.push(&item.sig, &item.block);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            self.push(&item.sig, &item.block);
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = item.default.as_ref().filter(|_| !is_test(&item.attrs)) {
            self.push(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

/// Whether a body is one expression that lists rows.
fn is_table(body: &syn::Block) -> bool {
    match body.stmts.as_slice() {
        [syn::Stmt::Expr(expr, _)] => lists_rows(expr),
        [syn::Stmt::Macro(_)] => true,
        _ => false,
    }
}

fn lists_rows(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Macro(_) => true,
        syn::Expr::Array(array) => array.elems.iter().all(|row| lines(row) <= ROW),
        syn::Expr::Struct(literal) => literal.fields.iter().all(|row| lines(row) <= ROW),
        syn::Expr::Match(table) => table.arms.iter().all(|row| lines(row) <= ROW),
        syn::Expr::Reference(inner) => lists_rows(&inner.expr),
        syn::Expr::Call(call) if call.args.len() == 1 => lists_rows(&call.args[0]),
        syn::Expr::MethodCall(call) if call.args.is_empty() => lists_rows(&call.receiver),
        _ => false,
    }
}

fn lines(row: &impl Spanned) -> usize {
    let span = row.span();
    span.end().line - span.start().line + 1
}
