//! What a Markdown document names: the spans in backticks and the targets of its links, outside fenced blocks.

/// One thing a document names, with its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mention<'a> {
    pub(crate) line: usize,
    pub(crate) text: &'a str,
}

/// The spans in single backticks.
pub(crate) fn spans(text: &str) -> Vec<Mention<'_>> {
    let mut found = Vec::new();
    for (line, content) in prose(text) {
        // Every second piece stands between two backticks; an odd last piece is never closed and is no span.
        let pieces: Vec<&str> = content.split('`').collect();
        let closed = pieces.len().saturating_sub(1);
        found.extend(pieces[..closed].iter().skip(1).step_by(2).map(|text| Mention { line, text }));
    }
    found
}

/// The targets of the links, as written.
pub(crate) fn links(text: &str) -> Vec<Mention<'_>> {
    let mut found = Vec::new();
    for (line, content) in prose(text) {
        for piece in content.split("](").skip(1) {
            if let Some((target, _)) = piece.split_once(')') {
                found.push(Mention { line, text: target.trim() });
            }
        }
    }
    found
}

fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(before, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((before + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "# A\nSee `a/b.rs` and [the rules](docs/rules.md#one), `c`.\n```sh\n`not this` [x](y)\n```\n`open\n";

    #[test]
    fn spans_and_links_have_lines_and_fences_are_left_out() {
        assert_eq!(spans(PAGE), [Mention { line: 2, text: "a/b.rs" }, Mention { line: 2, text: "c" }]);
        assert_eq!(links(PAGE), [Mention { line: 2, text: "docs/rules.md#one" }]);
    }
}
