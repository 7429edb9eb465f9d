//! Words that `docs/glossary.md` retires are not used any more: one word per concept.

use anyhow::{Context, Result};

use super::Finding;
use crate::tree::{Source, Tree};

const GLOSSARY: &str = "docs/glossary.md";
const TABLE: &str = "## Retired words";
/// This file, whose tests use such words.
const THIS: &str = "xtask/src/tidy/retired_words.rs";
/// Where a word may stand all the same: HTTP has a verb `post`, a blog has posts, a thread is parked, and a system has a user `nobody`.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/control/src/remote/request.rs", "post"),
    ("crates/control/src/server/routes.rs", "post"),
    ("crates/control/src/server/table.rs", "post"),
    ("crates/dacapo/tests/control_api/guard.rs", "post"),
    ("crates/dacapo/tests/control_api/paths.rs", "post"),
    ("docs/control.md", "post"),
    ("crates/dacapo/tests/compile_fail/method_without_arc.rs", "post"),
    ("crates/test-postgres/src/user.rs", "nobody"),
    ("crates/worker/src/attempt.rs", "parked"),
    ("crates/worker/tests/worker/attempt_parts.rs", "parked"),
    ("crates/worker/tests/worker/stubborn.rs", "parked"),
    ("docs/recipes.md", "post"),
    ("examples/shop/src/service.rs", "post"),
    ("examples/shop/tests/service.rs", "post"),
];

pub(super) fn find(tree: &Tree) -> Result<Vec<Finding>> {
    let Some(glossary) = tree.files().find(|source| source.path == GLOSSARY) else { return Ok(Vec::new()) };
    let words = retired(&glossary.text)?;
    let covered = tree.files().filter(|source| is_covered(&source.path));
    Ok(covered.flat_map(|source| findings(source, &words)).collect())
}

/// All Rust code with its tests, tables, scripts and expected texts, and all documents but the list itself and the log of changes.
fn is_covered(path: &str) -> bool {
    match path.rsplit_once('.') {
        Some((_, "rs" | "toml" | "sql" | "py" | "stderr")) => path != THIS,
        Some((_, "md")) => path != GLOSSARY && path != "CHANGELOG.md",
        _ => false,
    }
}

fn retired(glossary: &str) -> Result<Vec<String>> {
    let (_, table) = glossary.split_once(TABLE).with_context(|| format!("{GLOSSARY} has no table of retired words"))?;
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let words = rows.filter(|row| *row != "retired").flat_map(|row| row.split(", "));
    Ok(words.map(str::to_owned).collect())
}

fn findings<'a>(source: &'a Source, words: &'a [String]) -> impl Iterator<Item = Finding> + 'a {
    let is_allowed = |word: &str| ALLOWED.iter().any(|(path, of)| *path == source.path && *of == word);
    source.lines().flat_map(move |(number, line)| {
        let line = prose(&source.path, line).to_lowercase();
        let parts: Vec<String> = line.split(|letter: char| !letter.is_alphabetic()).map(str::to_owned).collect();
        let found = words.iter().filter(move |word| parts.contains(word) && !is_allowed(word));
        found.map(move |word| Finding::new(source, number, format!("`{word}`"))).collect::<Vec<_>>()
    })
}

/// A line without the code that a document quotes.
fn prose(path: &str, line: &str) -> String {
    match path.ends_with(".md") {
        true => line.split('`').step_by(2).collect(),
        false => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn retired_words_are_found_in_code_tests_and_documents() {
        let glossary = "# Glossary\n\n## Retired words\n\n| retired | instead |\n|---|---|\n| mail, post | message |\n";
        let tree = Tree::of(&[
            ("docs/glossary.md", glossary),
            ("docs/use.md", "Send a message.\nSend mail.\nCall `take_mail`.\n"),
            ("crates/a/src/lib.rs", "fn take_mail() {} // e-mails are fine\nfn compost() {}\n"),
            ("crates/a/tests/t.rs", "fn mail() {}\n"),
        ]);
        assert_eq!(
            shown(&find(&tree).unwrap()),
            ["docs/use.md:2: `mail`", "crates/a/src/lib.rs:1: `mail`", "crates/a/tests/t.rs:1: `mail`"]
        );
    }
}
