//! Tests never wait for real time: it makes them slow on a fast machine and wrong on a slow one.

use super::Finding;
use crate::tree::Tree;

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (source, code) in tree.rust() {
        let lines = code.lines_with("thread : : sleep").filter(|&line| source.is_test(line));
        findings.extend(lines.map(|line| Finding::new(source, line, "`thread::sleep` in a test")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn sleeping_is_found_in_tests_only() {
        let sleep = "fn a() { std::thread::sleep(d); }\n";
        let inside = format!("{sleep}#[cfg(test)]\nmod tests {{\n{sleep}}}\n");
        let tree = Tree::of(&[("a/src/lib.rs", &inside), ("a/tests/b.rs", sleep)]);
        let expected = ["a/src/lib.rs:4: `thread::sleep` in a test", "a/tests/b.rs:1: `thread::sleep` in a test"];
        assert_eq!(shown(&find(&tree)), expected);
    }
}
