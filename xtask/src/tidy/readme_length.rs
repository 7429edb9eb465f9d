//! The README stays a page that a visitor reads to its end.

use super::Finding;
use crate::tree::Tree;

const BELOW: usize = 200;

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let long = tree.get("README.md").filter(|source| source.text.lines().count() >= BELOW);
    long.map(|source| Finding::new(source, BELOW, format!("it must end before line {BELOW}"))).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn the_200th_line_is_one_too_many() {
        assert_eq!(find(&Tree::of(&[("README.md", &"a\n".repeat(199))])), []);
        let expected = ["README.md:200: it must end before line 200"];
        assert_eq!(shown(&find(&Tree::of(&[("README.md", &"a\n".repeat(200))]))), expected);
    }
}
