//! Nothing unfinished is committed.

use super::Finding;
use crate::tree::Tree;

/// Code that stands for work to come, as tokens.
const CODE: &[(&str, &str)] = &[
    ("todo !", "`todo!`"),
    ("unimplemented !", "`unimplemented!`"),
    ("dbg !", "`dbg!`"),
    ("# [ ignore", "`#[ignore]`"),
    ("dead_code", "a lint switched off for dead code"),
];

/// A macro whose users run the test that it defines in another way.
const DEFINES_A_TEST: &str = "crates/dacapo/src/deploy/mod.rs";

/// Words of comments. Split, so that this file does not find itself.
const WORDS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO")];

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (source, code) in tree.rust().filter(|(source, _)| source.path != DEFINES_A_TEST) {
        for (pattern, name) in CODE {
            findings.extend(code.lines_with(pattern).map(|line| Finding::new(source, line, *name)));
        }
    }
    for source in tree.files().filter(|source| !source.path.ends_with(".lock")) {
        for (line, text) in source.lines() {
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            findings.extend(words.filter(|word| WORDS.contains(word)).map(|word| Finding::new(source, line, word)));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn unfinished_work_is_found_in_code_and_comments() {
        let tree = Tree::of(&[
            ("a.rs", "fn a() { todo!() }\n#[ignore = \"slow\"]\n#[allow(unused, dead_code)]\nfn b() { dbg!(1); }\n"),
            ("b.md", concat!("all well\nFIX", "ME: this\n")),
            ("c.rs", "fn c() { let todo = \"todo!()\"; }"),
        ]);
        let expected = [
            "a.rs:1: `todo!`",
            "a.rs:4: `dbg!`",
            "a.rs:2: `#[ignore]`",
            "a.rs:3: a lint switched off for dead code",
            concat!("b.md:2: FIX", "ME"),
        ];
        assert_eq!(shown(&find(&tree)), expected);
    }
}
