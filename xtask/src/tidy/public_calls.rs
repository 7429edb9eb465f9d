//! Every public call of the crate that users depend on has a row in the table of bad input: what it is given that it cannot
//! take, and what it says; or why it cannot be given anything bad.

use crate::code::Code;
use crate::tidy::Finding;
use crate::tree::Tree;

const CALLS: [&str; 2] = ["crates/dacapo/src/client/", "crates/dacapo/src/ctx/"];
const TABLE: &str = "crates/dacapo/tests/bad_input/";

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut rows: Vec<String> = Vec::new();
    for source in tree.files().filter(|source| source.path.starts_with(TABLE)) {
        let code = Code::lex(&source.text).unwrap_or_default();
        rows.extend(code.tokens.iter().map(|token| token.text.trim_matches('"').to_owned()));
    }
    let mut findings = Vec::new();
    for source in tree.files().filter(|source| CALLS.iter().any(|folder| source.path.starts_with(folder))) {
        for (call, line) in calls(&Code::lex(&source.text).unwrap_or_default()) {
            if !rows.contains(&call) {
                findings.push(Finding::new(source, line, format!("{call} has no row in {TABLE}")));
            }
        }
    }
    findings
}

/// The public methods of a file, as `Type::method`.
fn calls(code: &Code) -> Vec<(String, usize)> {
    let mut calls = Vec::new();
    let mut depth = 0;
    let mut of: Option<String> = None;
    for at in 0..code.tokens.len() {
        match code.text(at) {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                if depth == 0 {
                    of = None;
                }
            }
            "impl" if depth == 0 => of = inherent(code, at),
            "pub" if depth == 1 && code.text(at + 1) != "(" => {
                let name = (at + 1..at + 4).find(|&at| code.text(at) == "fn").map(|at| code.text(at + 1));
                if let (Some(of), Some(name)) = (&of, name) {
                    calls.push((format!("{of}::{name}"), code.tokens[at].line));
                }
            }
            _ => {}
        }
    }
    calls
}

/// The type of an impl block that is of no trait.
fn inherent(code: &Code, at: usize) -> Option<String> {
    let mut angles = 0;
    let mut of = None;
    for at in at + 1..code.tokens.len() {
        match code.text(at) {
            "<" => angles += 1,
            // The arrow of a function type closes nothing.
            ">" if code.text(at - 1) != "-" => angles -= 1,
            "for" | "where" | "{" if angles == 0 => return of.filter(|_| code.text(at) != "for"),
            text if angles == 0 && code.tokens[at].is_ident() => of = Some(text.to_owned()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    const CALL: &str =
        "impl<O: Fn() -> u8> Handle<O> { pub async fn signal(&self) {} pub(crate) fn inner() {} fn own() {} }
        impl fmt::Debug for Handle { pub fn fmt(&self) {} }";

    #[test]
    fn a_public_call_without_a_row_is_found() {
        let tree = Tree::of(&[("crates/dacapo/src/client/handle.rs", CALL)]);
        let found =
            ["crates/dacapo/src/client/handle.rs:1: Handle::signal has no row in crates/dacapo/tests/bad_input/"];
        assert_eq!(shown(&find(&tree)), found);
    }

    #[test]
    fn a_row_names_its_call() {
        let table = ("crates/dacapo/tests/bad_input/handle.rs", "fn f() { row(\"Handle::signal\", 1) }");
        let tree = Tree::of(&[("crates/dacapo/src/client/handle.rs", CALL), table]);
        assert_eq!(shown(&find(&tree)), [""; 0]);
    }
}
