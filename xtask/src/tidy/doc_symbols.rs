//! Every type, function and path that the documents name stands somewhere in the code.
//!
//! A cheap search by word: it finds what was renamed or removed, which is how such pages go stale.

use std::collections::BTreeSet;

use super::Finding;
use crate::markdown;
use crate::tree::Tree;

const PAGES: &[&str] = &[
    "ARCHITECTURE.md",
    "README.md",
    "docs/decisions.md",
    "docs/deploy.md",
    "docs/determinism.md",
    "docs/learn.md",
    "docs/operate.md",
    "docs/recipes.md",
    "docs/semantics.md",
    "docs/start.md",
    "docs/test.md",
    "docs/troubleshoot.md",
    "docs/where-to-change.md",
];

/// Roots of paths that are not ours.
const FOREIGN: &[&str] =
    &["std", "alloc", "tokio", "futures", "proptest", "criterion", "temporal", "temporalio", "chrono", "uuid"];

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let known = tree.idents();
    let crates = crate_names(tree);
    let mut findings = Vec::new();
    for source in PAGES.iter().filter_map(|page| tree.get(page)) {
        for span in markdown::spans(&source.text) {
            let is_known = |part: &&str| known.contains(part) || crates.contains(*part);
            if let Some(gone) = symbol(span.text).into_iter().flatten().find(|part| !is_known(part)) {
                findings.push(Finding::new(source, span.line, format!("`{}`: no `{gone}` in the code", span.text)));
            }
        }
    }
    findings
}

/// The parts of a span that reads as a symbol: `Seg::P(3)`, `Policy<'a>`, `rng::derive`, `UnitId`.
fn symbol(span: &str) -> Option<Vec<&str>> {
    let path = span.split(['(', '<', '{', '[', '!']).next()?.trim_end_matches(':');
    let parts: Vec<&str> = path.split("::").collect();
    let idents = parts.iter().all(|part| is_ident(part));
    // `WAL` and `SQL` are words, `MAX_ROUNDS` is a constant.
    let word = parts.len() == 1 && path.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    let named = parts.len() > 1 || path.starts_with(|c: char| c.is_ascii_uppercase());
    (idents && named && !word && !FOREIGN.contains(&parts[0])).then_some(parts)
}

fn is_ident(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn crate_names(tree: &Tree) -> BTreeSet<String> {
    let manifests = tree.files().filter(|source| source.file_name() == "Cargo.toml");
    let name =
        |text: &str| Some(text.parse::<toml::Table>().ok()?.get("package")?.get("name")?.as_str()?.replace('-', "_"));
    manifests.filter_map(|source| name(&source.text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn a_symbol_that_is_gone_is_found() {
        let page =
            "`Seg::P(3)` `UnitId` `dacapo_core::UnitId` `Vec<Gone>` `std::time::Instant` `WAL` `S0-30` `README.md`
`Result<T, Failure>` `ctx.sleep` `Policy::choose` `Gone` `rng::derive` `a + B` `Send + 'static`\n";
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", page),
            ("CHANGELOG.md", "`Gone`"),
            ("crates/core/Cargo.toml", "[package]\nname = \"dacapo-core\""),
            ("a.rs", "enum Seg { P } struct UnitId(Vec<u8>); mod rng {} type A = Result<Policy>;"),
        ]);
        let expected = [
            "ARCHITECTURE.md:2: `Policy::choose`: no `choose` in the code",
            "ARCHITECTURE.md:2: `Gone`: no `Gone` in the code",
            "ARCHITECTURE.md:2: `rng::derive`: no `derive` in the code",
        ];
        assert_eq!(shown(&find(&tree)), expected);
    }
}
