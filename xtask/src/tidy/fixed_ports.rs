//! Tests bind no fixed port: two runs on one machine must not meet.

use super::Finding;
use crate::code::{Code, TokenKind};
use crate::tree::Tree;

/// This file's own tests have to write ports.
const OWN: &str = "xtask/src/tidy/fixed_ports.rs";

const HOSTS: &[&str] = &["127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::]"];

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (source, code) in tree.rust().filter(|(source, _)| source.path != OWN) {
        for at in 0..code.tokens.len() {
            let line = code.tokens[at].line;
            if names_a_port(code, at) && source.is_test(line) {
                findings.push(Finding::new(source, line, format!("a fixed port after {}", code.text(at))));
            }
        }
    }
    findings
}

/// `"localhost:4000"` or `("localhost", 4000)`. Port 0 lets the system choose and is welcome.
fn names_a_port(code: &Code, at: usize) -> bool {
    if code.tokens[at].kind != TokenKind::Literal {
        return false;
    }
    HOSTS.iter().any(|host| {
        let inside = code.text(at).split(host).skip(1).filter_map(|rest| rest.strip_prefix(':'));
        let beside = code.text(at).trim_matches('"') == *host && code.text(at + 1) == ",";
        inside.into_iter().any(starts_a_port) || beside && starts_a_port(code.text(at + 2))
    })
}

fn starts_a_port(text: &str) -> bool {
    text.starts_with(|c: char| ('1'..='9').contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn a_port_is_found_in_an_address_and_beside_one() {
        let text =
            "fn a() {\n bind(\"127.0.0.1:0\");\n bind(\"http://localhost:4000/x\");\n bind((\"0.0.0.0\", 80));\n}";
        let tree = Tree::of(&[("a/tests/b.rs", text), ("a/src/lib.rs", text)]);
        let expected = [
            "a/tests/b.rs:3: a fixed port after \"http://localhost:4000/x\"",
            "a/tests/b.rs:4: a fixed port after \"0.0.0.0\"",
        ];
        assert_eq!(shown(&find(&tree)), expected);
    }
}
