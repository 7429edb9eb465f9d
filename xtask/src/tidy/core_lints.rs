//! Clippy knows the core's bans through a file beside its manifest; without it they are silently gone.

use super::Finding;
use crate::tree::Tree;

const FILE: &str = "crates/core/clippy.toml";

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let lists = ["disallowed-methods", "disallowed-types", "disallowed-macros"];
    let text = tree.get(FILE).map_or("", |source| source.text.as_str());
    let gone = lists.iter().filter(|list| !text.lines().any(|line| line.starts_with(*list)));
    gone.map(|list| Finding::at(FILE, 1, format!("no `{list}`"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn every_list_of_bans_is_required() {
        let whole = "disallowed-methods = []\ndisallowed-types = []\ndisallowed-macros = []\n";
        assert_eq!(find(&Tree::of(&[(FILE, whole)])), []);
        let part = "disallowed-methods = []\ndisallowed-types = []\n";
        let expected = ["crates/core/clippy.toml:1: no `disallowed-macros`"];
        assert_eq!(shown(&find(&Tree::of(&[(FILE, part)]))), expected);
        assert_eq!(find(&Tree::of(&[])).len(), 3);
    }
}
