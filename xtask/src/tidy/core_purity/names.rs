//! What the core's sources may name.

use crate::code::Code;
use crate::tidy::Finding;
use crate::tidy::standard_paths::{is_joined, standard_paths};
use crate::tree::{Source, Tree};

const SOURCES: &str = "crates/core/src/";
const POLICIES: &str = "crates/core/src/policy/";

/// All that the core may name of the standard library: these, and what is inside of them.
const ALLOWED: &[&str] = &[
    "any",
    "array",
    "borrow",
    "cell",
    "cmp",
    "collections::BTreeMap",
    "collections::BTreeSet",
    "collections::VecDeque",
    "error",
    "fmt",
    "future",
    "hash::Hash",
    "hash::Hasher",
    "io::Error",
    "iter",
    "mem",
    "num",
    "ops",
    "panic",
    "pin",
    "str",
    "string",
    "sync::Arc",
    "sync::Mutex",
    "sync::MutexGuard",
    "sync::Once",
    "sync::PoisonError",
    "sync::TryLockError",
    "sync::Weak",
    "sync::atomic",
    "task",
    "thread::panicking",
    "time::Duration",
];

/// Refused wherever they stand, as tokens: what needs no path, and methods.
const REFUSED: &[&str] = &[
    "extern crate",
    "unsafe",
    "sort_unstable",
    "sort_unstable_by",
    "sort_unstable_by_key",
    "select_nth_unstable",
    "select_nth_unstable_by",
    "select_nth_unstable_by_key",
    "print !",
    "println !",
    "eprint !",
    "eprintln !",
    "dbg !",
    "env !",
    "option_env !",
];

/// Refused in policies: a policy belongs to one run, so it has no locks and shares nothing.
const REFUSED_IN_POLICIES: &[&str] = &["static", "thread_local", "Mutex", "RwLock", "atomic", "time", "thread", "io"];

/// The only roots of paths in the `use` declarations of policies.
const ROOTS_OF_POLICIES: &[&str] = &["std", "crate", "super", "self", "minicbor", "serde", "serde_json", "thiserror"];

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (source, code) in tree.rust().filter(|(source, _)| source.path.starts_with(SOURCES)) {
        findings.extend(refused(source, code, REFUSED));
        let unlisted = standard_paths(code).into_iter().filter(|(_, path)| !is_allowed(path));
        findings.extend(unlisted.map(|(line, path)| Finding::new(source, line, format!("`std{path}`"))));
        if source.path.starts_with(POLICIES) {
            findings.extend(refused(source, code, REFUSED_IN_POLICIES));
            findings.extend(foreign_roots(source, code));
        }
    }
    findings
}

fn refused<'a>(source: &'a Source, code: &'a Code, patterns: &'a [&str]) -> impl Iterator<Item = Finding> + 'a {
    let finding = |pattern: &'a str, line| Finding::new(source, line, format!("`{}`", pattern.replace(" !", "!")));
    // A lifetime is a quote and a name.
    let found = move |pattern| code.find(pattern).filter(|&at| at == 0 || code.text(at - 1) != "'");
    let lines = move |pattern| found(pattern).map(|at| code.tokens[at].line);
    patterns.iter().flat_map(move |pattern| lines(pattern).map(move |line| finding(pattern, line)))
}

fn is_allowed(path: &str) -> bool {
    let path = path.trim_start_matches("::");
    ALLOWED
        .iter()
        .any(|allowed| path.strip_prefix(allowed).is_some_and(|rest| rest.is_empty() || rest.starts_with("::")))
}

/// Crates that a policy uses and must not.
fn foreign_roots(source: &Source, code: &Code) -> Vec<Finding> {
    let roots = code.find("use").map(|at| at + 1).filter(|&at| is_joined(code, at + 1));
    let modules: Vec<&str> = code.find("mod").map(|at| code.text(at + 1)).collect();
    let foreign = roots.filter(|&at| !ROOTS_OF_POLICIES.contains(&code.text(at)) && !modules.contains(&code.text(at)));
    foreign.map(|at| Finding::new(source, code.tokens[at].line, format!("`{}` in a policy", code.text(at)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn names_that_are_not_on_the_list_are_found_in_the_core_alone() {
        let text = "//! No tokio, no std::fs.
use std::time::{Duration, Instant};
use std::{collections::{BTreeMap, HashMap}, fmt::{self, Debug}, env, net::*};
fn a() { std::fs::read(p); ::core::hash::RandomState::new(); v.sort_unstable(); println!(\"std::fs\"); }
fn b() { std::mem::take::<u8>(x); std::thread::panicking(); core: 1, self.core; Vec::<std::io::Stdin>::new() }
use std as library; use std::thread;
#[cfg(windows)] #[allow(clippy::all)] fn c() { m!(std::process::exit(1)) }
extern crate libc;
";
        let tree = Tree::of(&[("crates/core/src/a.rs", text), ("crates/core/tests/a.rs", text)]);
        let expected = [
            "crates/core/src/a.rs:8: `extern crate`",
            "crates/core/src/a.rs:4: `sort_unstable`",
            "crates/core/src/a.rs:4: `println!`",
            "crates/core/src/a.rs:2: `std::time::Instant`",
            "crates/core/src/a.rs:3: `std::collections::HashMap`",
            "crates/core/src/a.rs:3: `std::env`",
            "crates/core/src/a.rs:3: `std::net`",
            "crates/core/src/a.rs:4: `std::fs::read`",
            "crates/core/src/a.rs:4: `std::hash::RandomState::new`",
            "crates/core/src/a.rs:5: `std::io::Stdin`",
            "crates/core/src/a.rs:6: `std`",
            "crates/core/src/a.rs:6: `std::thread`",
            "crates/core/src/a.rs:7: `std::process::exit`",
        ];
        assert_eq!(shown(&find(&tree)), expected);
    }

    #[test]
    fn policy_with_a_lock_a_shared_value_or_another_crate_is_found() {
        let text = "use std::sync::Mutex;\nuse rand::Rng;\nstatic A: &'static u8 = 0;\nuse std::time::Duration;\nmod own; use own::Own;\n";
        let tree = Tree::of(&[("crates/core/src/policy/a.rs", text)]);
        let expected = [
            "crates/core/src/policy/a.rs:3: `static`",
            "crates/core/src/policy/a.rs:1: `Mutex`",
            "crates/core/src/policy/a.rs:4: `time`",
            "crates/core/src/policy/a.rs:2: `rand` in a policy",
        ];
        assert_eq!(shown(&find(&tree)), expected);
    }
}
