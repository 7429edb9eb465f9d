//! Every relative link of a document leads to a file or folder of the tree.

use super::Finding;
use super::doc_paths::resolve;
use crate::markdown;
use crate::tree::Tree;

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.markdown() {
        for link in markdown::links(&source.text) {
            let target = link.text.split(['#', ' ']).next().unwrap_or_default();
            let elsewhere = target.is_empty() || target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !resolve(source.folder(), target).is_some_and(|path| tree.holds(&path)) {
                findings.push(Finding::new(source, link.line, format!("`{}` leads nowhere", link.text)));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn a_link_is_followed_from_its_document() {
        let page = "[a](../README.md) [b](guide.md#part) [c](#here) [d](https://example.org/x) [e](mailto:a@b)
[f](gone.md) [g](../../outside.md)\n";
        let tree = Tree::of(&[("README.md", ""), ("docs/page.md", page), ("docs/guide.md", "")]);
        let expected = ["docs/page.md:2: `gone.md` leads nowhere", "docs/page.md:2: `../../outside.md` leads nowhere"];
        assert_eq!(shown(&find(&tree)), expected);
    }
}
