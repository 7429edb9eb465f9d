//! The core is pure: it names no clock, thread, file, network, process, runtime, output or hash order.
//!
//! `crates/core/clippy.toml` says the same to clippy, which sees types through aliases; this rule also sees code that a
//! `cfg` or an `allow` hides from it.

use super::Finding;
use crate::code::Code;
use crate::tree::Tree;

/// Forbidden wherever they stand, as tokens.
const NAMES: &[&str] = &[
    "Instant",
    "SystemTime",
    "HashMap",
    "HashSet",
    "RandomState",
    "tokio",
    "unsafe",
    "sort_unstable",
    "sort_unstable_by",
    "sort_unstable_by_key",
    "print !",
    "println !",
    "eprint !",
    "eprintln !",
    "thread : : spawn",
    "thread : : sleep",
    "thread : : scope",
    "thread : : park",
    "thread : : park_timeout",
    "thread : : Builder",
];

/// Forbidden modules of std, also inside `use std::{…}`.
const MODULES: &[&str] = &["fs", "net", "env", "process", "os"];

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (source, code) in tree.rust().filter(|(source, _)| source.path.starts_with("crates/core/src/")) {
        for name in NAMES {
            let shown = name.replace(' ', "");
            findings.extend(code.lines_with(name).map(|line| Finding::new(source, line, format!("`{shown}`"))));
        }
        for (line, module) in std_modules(code) {
            findings.push(Finding::new(source, line, format!("`std::{module}`")));
        }
    }
    findings
}

fn std_modules(code: &Code) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for at in code.find("std : :") {
        let first = at + 3;
        let named = if code.text(first) == "{" { group_members(code, first) } else { vec![first] };
        let forbidden = named.into_iter().filter(|&at| MODULES.contains(&code.text(at)));
        found.extend(forbidden.map(|at| (code.tokens[at].line, code.text(at))));
    }
    found
}

/// Where the members of a `use` group begin.
fn group_members(code: &Code, open: usize) -> Vec<usize> {
    let mut members = vec![open + 1];
    let mut at = open + 1;
    let end = code.closing(open);
    while at < end {
        match code.text(at) {
            "{" => at = code.closing(at),
            "," => members.push(at + 1),
            _ => {}
        }
        at += 1;
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn impure_names_are_found_in_the_core_alone() {
        let text = "//! No tokio, no HashMap.
use std::time::{Duration, Instant};
use std::{collections::{BTreeMap, fs}, net::IpAddr, env};
fn a() { std::fs::read(p); std::thread::spawn(f); v.sort_unstable(); println!(\"HashMap\"); }
fn b() { std::thread::current(); std::fmt::Debug; }
";
        let tree = Tree::of(&[("crates/core/src/a.rs", text), ("crates/core/tests/a.rs", text)]);
        let expected = [
            "crates/core/src/a.rs:2: `Instant`",
            "crates/core/src/a.rs:4: `sort_unstable`",
            "crates/core/src/a.rs:4: `println!`",
            "crates/core/src/a.rs:4: `thread::spawn`",
            "crates/core/src/a.rs:3: `std::net`",
            "crates/core/src/a.rs:3: `std::env`",
            "crates/core/src/a.rs:4: `std::fs`",
        ];
        assert_eq!(shown(&find(&tree)), expected);
    }
}
