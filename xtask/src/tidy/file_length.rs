//! Rust files stay short enough to be read in one sitting.

use super::Finding;
use crate::tree::Tree;

const MOST: usize = 800;

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let long = tree.rust().filter(|(source, _)| source.text.lines().count() > MOST);
    long.map(|(source, _)| {
        let lines = source.text.lines().count();
        Finding::new(source, lines, format!("{lines} lines, and {MOST} is the most"))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn the_801st_line_is_one_too_many() {
        let (fits, long) = ("//\n".repeat(800), "//\n".repeat(801));
        let tree = Tree::of(&[("fits.rs", &fits), ("long.rs", &long), ("long.md", &long)]);
        assert_eq!(shown(&find(&tree)), ["long.rs:801: 801 lines, and 800 is the most"]);
    }
}
