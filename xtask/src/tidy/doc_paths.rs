//! Every path that a document names in backticks exists.

use super::Finding;
use crate::markdown;
use crate::tree::{Source, Tree};

const ENDINGS: &[&str] = &[".rs", ".md", ".toml", ".lock", ".sh", ".sql", ".proto", ".json", ".yml", ".yaml", ".txt"];

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A changelog may speak of what is gone.
    for source in tree.markdown().filter(|source| source.path != "CHANGELOG.md") {
        for span in markdown::spans(&source.text) {
            let path = without_line_number(span.text.trim_end_matches('/'));
            if looks_like_a_path(path) && !exists(tree, source, path) {
                findings.push(Finding::new(source, span.line, format!("`{}` does not exist", span.text)));
            }
        }
    }
    findings
}

/// A name with a slash or a known ending, in a path's letters alone. What the build makes is not in the tree, and a
/// path that starts with a slash or is written with a `*` names no file of ours.
fn looks_like_a_path(text: &str) -> bool {
    let letters = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    let slashed = text.contains('/') && text.split('/').all(|part| part.contains(|c: char| c.is_ascii_alphabetic()));
    let ended = ENDINGS.iter().any(|ending| text.len() > ending.len() && text.ends_with(ending));
    letters && (slashed || ended) && !text.starts_with('/') && !text.starts_with("target/")
}

fn without_line_number(text: &str) -> &str {
    match text.rsplit_once(':') {
        Some((path, line)) if !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()) => path,
        _ => text,
    }
}

/// From the root, from the document, or, for a bare file name, anywhere.
fn exists(tree: &Tree, source: &Source, path: &str) -> bool {
    let anywhere = !path.contains('/') && tree.files().any(|file| file.file_name() == path);
    let from = |folder: &str| resolve(folder, path).is_some_and(|path| tree.holds(&path));
    anywhere || from("") || from(source.folder())
}

/// `path` as seen from `folder`, without dots; nothing where it leaves the tree.
pub(super) fn resolve(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn a_path_that_is_gone_is_found() {
        let page = "`src/a.rs` `docs/page.md` `crates/a/` `crates/a/src/a.rs:3` `page.md` `a.rs` `../README.md`
`crates/b` `gone.rs` `target/doc/index.html` `1/2` `crates/*/src` `a / b` `/etc/hosts` `std::fs` `now()`\n";
        let tree =
            Tree::of(&[("README.md", ""), ("docs/page.md", page), ("crates/a/src/a.rs", ""), ("docs/src/a.rs", "")]);
        let expected = ["docs/page.md:2: `crates/b` does not exist", "docs/page.md:2: `gone.rs` does not exist"];
        assert_eq!(shown(&find(&tree)), expected);
    }

    #[test]
    fn dots_are_resolved_and_stay_inside() {
        assert_eq!(resolve("docs/guides", "../a/./b.md").as_deref(), Some("docs/a/b.md"));
        assert_eq!(resolve("docs", "../../b.md"), None);
    }
}
