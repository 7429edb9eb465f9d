//! A file is one noun; a name that could hold anything will.

use super::Finding;
use crate::tree::Tree;

const VAGUE: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"];

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (source, code) in tree.rust() {
        let parts = source.path.trim_end_matches(".rs").split('/');
        findings
            .extend(parts.filter(|part| VAGUE.contains(part)).map(|part| Finding::new(source, 1, format!("`{part}`"))));
        for at in code.find("mod").filter(|&at| VAGUE.contains(&code.text(at + 1))) {
            findings.push(Finding::new(source, code.tokens[at].line, format!("`mod {}`", code.text(at + 1))));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn vague_files_folders_and_modules_are_found() {
        let tree = Tree::of(&[
            ("a/src/lib.rs", "mod queue;\nmod misc {}\n"),
            ("a/src/util.rs", ""),
            ("a/tests/common/mod.rs", ""),
            ("a/src/utility_bill.rs", ""),
        ]);
        let expected = ["a/src/lib.rs:2: `mod misc`", "a/src/util.rs:1: `util`", "a/tests/common/mod.rs:1: `common`"];
        assert_eq!(shown(&find(&tree)), expected);
    }
}
