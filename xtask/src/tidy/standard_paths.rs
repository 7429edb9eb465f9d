//! Paths into the standard library, read from tokens.

use crate::code::Code;

/// All paths that begin with the standard library, each with its line and without its first name: `::fmt::Debug`. The library's name
/// without a path behind it (`use std as other`) is a path too, an empty one.
pub(super) fn standard_paths(code: &Code) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for at in 0..code.tokens.len() {
        let is_library = code.tokens[at].is_ident() && matches!(code.text(at), "std" | "core" | "alloc");
        // `self.core`, `crate::core` and `core:` as a field are something else.
        let is_inner = at > 0
            && (code.text(at - 1) == "." || code.text(at - 1) == ":" && at > 2 && code.tokens[at - 3].is_ident());
        if is_library && !is_inner && (is_joined(code, at + 1) || code.text(at) == "std") {
            paths_from(code, at + 1, String::new(), &mut found);
        }
    }
    found
}

/// Whether `::` stands here.
pub(super) fn is_joined(code: &Code, at: usize) -> bool {
    code.text(at) == ":" && code.text(at + 1) == ":"
}

/// The paths that go on at `at` after `before`.
fn paths_from(code: &Code, at: usize, before: String, found: &mut Vec<(usize, String)>) {
    let line = code.tokens[at - 1].line;
    if !is_joined(code, at) {
        return found.push((line, before));
    }
    let next = at + 2;
    if code.text(next) == "{" {
        for member in members(code, next) {
            if code.text(member) == "self" {
                found.push((code.tokens[member].line, before.clone()));
            } else {
                paths_from(code, member + 1, format!("{before}::{}", code.text(member)), found);
            }
        }
    } else if code.tokens.get(next).is_some_and(|token| token.is_ident()) {
        paths_from(code, next + 1, format!("{before}::{}", code.text(next)), found);
    } else {
        // A glob, or the generic arguments of what has been named.
        found.push((line, before));
    }
}

/// Where the members of a `use` group begin.
fn members(code: &Code, open: usize) -> Vec<usize> {
    let mut members = vec![open + 1];
    let mut at = open + 1;
    let end = code.closing(open);
    while at < end {
        match code.text(at) {
            "{" => at = code.closing(at),
            "," if at + 1 < end => members.push(at + 1),
            _ => {}
        }
        at += 1;
    }
    members
}
