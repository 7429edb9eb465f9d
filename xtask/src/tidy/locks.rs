//! Locks of the product have a rank, and poisoning is handled in one place.
//!
//! Test builds check the order in which a thread takes ranked locks (`dacapo_sync`). The core's dependencies are fixed, so it has
//! one newtype of its own. Tests may use any lock. docs/engine.md lists every rank.

use super::Finding;
use super::standard_paths::standard_paths;
use crate::code::Code;
use crate::tree::{Source, Tree};

/// The only file of the core that names a mutex.
const CORE_LOCK: &str = "crates/core/src/lock.rs";

/// The files that handle poisoning: the core's, and that of the ranked locks.
const HANDLE_POISONING: &[&str] = &[CORE_LOCK, "crates/sync/src/mutex.rs"];

/// Crates whose locks have ranks.
const RANKED: &[&str] = &["dacapo", "engine", "sqlite", "store", "sys", "temporal", "worker"];

/// The table of ranks, and the page that lists them.
const RANKS: &str = "crates/sync/src/ranks.rs";
const PAGE: &str = "docs/engine.md";

const UNRANKED: &[&str] = &["::sync::Mutex", "::sync::RwLock", "::sync::Condvar"];

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let files = tree.rust().filter(|(source, _)| !HANDLE_POISONING.contains(&source.path.as_str()));
    let in_code =
        files.flat_map(|(source, code)| poison_handling(source, code).into_iter().chain(unranked(source, code)));
    in_code.chain(unlisted(tree)).collect()
}

/// Ranks that the page does not list with their number and name.
fn unlisted(tree: &Tree) -> Vec<Finding> {
    let (Some(table), Some(page)) = (tree.get(RANKS), tree.get(PAGE)) else { return Vec::new() };
    let is_listed = |entry: &String| page.text.contains(entry);
    let entries = table.lines().filter_map(|(line, text)| Some((line, listed_as(text)?)));
    let missing = entries.filter(|(_, entry)| !is_listed(entry));
    missing
        .map(|(line, entry)| Finding::new(table, line, format!("{PAGE} has no `{entry}` in its table of locks")))
        .collect()
}

/// How the page lists the rank of a line such as `RUN = new 30 "engine: run";`.
fn listed_as(line: &str) -> Option<String> {
    let (_, rank) = line.split_once(" = new ").or_else(|| line.split_once(" = blocking "))?;
    let (number, name) = rank.split_once(" \"")?;
    let (_, name) = name.strip_suffix("\";")?.split_once(": ")?;
    Some(format!("**{number}** {name}"))
}

fn poison_handling(source: &Source, code: &Code) -> Vec<Finding> {
    code.lines_with("PoisonError").map(|line| Finding::new(source, line, "`PoisonError`")).collect()
}

fn unranked(source: &Source, code: &Code) -> Vec<Finding> {
    let Some(of) = source.path.strip_prefix("crates/").and_then(|path| path.split('/').next()) else {
        return Vec::new();
    };
    let (is_ranked, is_core) = (RANKED.contains(&of), of == "core");
    if !is_ranked && !is_core {
        return Vec::new();
    }
    let standard = standard_paths(code).into_iter().filter(|(_, path)| is_unranked(path));
    let mut found: Vec<(usize, String)> = standard.map(|(line, path)| (line, format!("std{path}"))).collect();
    found.extend(code.lines_with("parking_lot").map(|line| (line, "parking_lot".to_owned())));
    let of_product = found.into_iter().filter(|(line, _)| !source.is_test(*line));
    of_product.map(|(line, path)| Finding::new(source, line, format!("`{path}`"))).collect()
}

/// A lock of the standard library, or all of its locks by a glob or by the module's name.
fn is_unranked(path: &str) -> bool {
    path == "::sync" || UNRANKED.iter().any(|lock| *lock == path || path.starts_with(&format!("{lock}::")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn poison_handling_is_refused_everywhere_but_in_the_lock_of_the_core() {
        let text = "use std::sync::PoisonError;\n// PoisonError\n";
        let files = ["crates/core/src/lock.rs", "crates/core/src/run.rs", "bench/src/a.rs", "crates/a/tests/b.rs"];
        let tree = Tree::of(&files.map(|file| (file, text)));
        let expected = ["bench/src/a.rs", "crates/a/tests/b.rs", "crates/core/src/run.rs"];
        let mut found = shown(&find(&tree));
        found.sort();
        assert_eq!(found, expected.map(|file| format!("{file}:1: `PoisonError`")));
    }

    #[test]
    fn rank_that_the_page_does_not_list_is_found() {
        let ranks =
            "    /// One run.\n    RUN = new 30 \"engine: run\";\n    READER = blocking 320 \"store: reader\";\n";
        let tree = Tree::of(&[(RANKS, ranks), (PAGE, "| engine | **30** run: `CachedRun` |")]);
        let expected = "crates/sync/src/ranks.rs:3: docs/engine.md has no `**320** reader` in its table of locks";
        assert_eq!(shown(&find(&tree)), [expected]);
    }

    #[test]
    fn lock_without_a_rank_is_refused_in_the_product_and_allowed_in_tests() {
        let text = "use std::sync::{Arc, Mutex, MutexGuard};\nuse std::sync;\nfn a() { std::sync::RwLock::new(1) }\n\
                    use parking_lot::Condvar;\n#[cfg(test)]\nmod tests {\n    use std::sync::Mutex;\n}\n";
        let tree = Tree::of(&[
            ("crates/store/src/a.rs", text),
            ("crates/sync/src/a.rs", text),
            ("crates/testkit/src/a.rs", text),
            ("crates/store/tests/a.rs", text),
        ]);
        let expected = [
            "crates/store/src/a.rs:1: `std::sync::Mutex`",
            "crates/store/src/a.rs:2: `std::sync`",
            "crates/store/src/a.rs:3: `std::sync::RwLock::new`",
            "crates/store/src/a.rs:4: `parking_lot`",
        ];
        assert_eq!(shown(&find(&tree)), expected);
    }
}
