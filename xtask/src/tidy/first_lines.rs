//! The first line of a doc comment says what an item is or does, without the items before it: lists of items show that line
//! alone.

use super::Finding;
use crate::tree::{Source, Tree};

/// Beginnings that point at another item, or ask instead of saying.
const EMPTY: &[&str] = &["The same ", "Does the same", "What ", "One of ", "As "];

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let covered = tree.files().filter(|source| {
        source.path.starts_with("crates/") && source.path.contains("/src/") && source.path.ends_with(".rs")
    });
    covered.flat_map(findings).collect()
}

fn findings(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_first = true;
    for (number, line) in source.lines() {
        let text = line.trim_start().strip_prefix("///");
        if let Some(text) = text.filter(|_| is_first && !source.is_test(number)) {
            let found = EMPTY.iter().find(|beginning| text.trim_start().starts_with(**beginning));
            findings
                .extend(found.map(|beginning| Finding::new(source, number, format!("`{}…`", beginning.trim_end()))));
        }
        is_first = text.is_none();
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn first_line_that_means_nothing_alone_is_found() {
        let code =
            "/// Whatever comes.\n/// What follows is no first line.\nfn a() {}\n\n/// What a call brings.\nfn b() {}\n
            trait T {\n    /// Does the same.\n    fn c();\n    /// Assigns.\n    fn d();\n}\n
            #[cfg(test)]\nmod tests {\n    /// As a test does.\n    fn e() {}\n}\n";
        let tree =
            Tree::of(&[("crates/a/src/lib.rs", code), ("crates/a/tests/t.rs", "/// What a story.\nfn f() {}\n")]);
        assert_eq!(shown(&find(&tree)), ["crates/a/src/lib.rs:5: `What…`", "crates/a/src/lib.rs:9: `Does the same…`"]);
    }
}
