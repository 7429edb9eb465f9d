//! A test that a document quotes exists: the documents prove their claims by naming tests.

use super::Finding;
use crate::markdown;
use crate::tree::Tree;

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let known = tree.idents();
    let mut findings = Vec::new();
    for source in tree.markdown() {
        for span in markdown::spans(&source.text) {
            if reads_as_a_test(span.text) && !known.contains(span.text) {
                findings.push(Finding::new(source, span.line, format!("no test `{}`", span.text)));
            }
        }
    }
    findings
}

/// A test's name is a sentence, so it has at least three underscores. A setting as long as that is found in the code
/// like a test; a meter is not, and has a test of its own.
fn reads_as_a_test(text: &str) -> bool {
    let snake = text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    snake && text.matches('_').count() >= 3 && !text.starts_with("dacapo_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn a_quoted_test_that_is_gone_is_found() {
        let page = "`a_unit_runs_once` `a_unit_runs_twice` `max_entries` `Not_a_test_name`\n";
        let tree = Tree::of(&[("docs/a.md", page), ("a.rs", "#[test] fn a_unit_runs_once() {}")]);
        assert_eq!(shown(&find(&tree)), ["docs/a.md:1: no test `a_unit_runs_twice`"]);
    }
}
