//! The table of `docs/requirements.md`, read and filled line by line, so that all other text stays as it is.

use anyhow::{Context, Result, bail};

use super::id::Id;
use super::shown::Shown;

/// Where a requirement belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    A,
    B,
    C,
    D,
    NotApplicable,
}

impl Part {
    fn parse(text: &str) -> Result<Self> {
        Ok(match text {
            "A" => Self::A,
            "B" => Self::B,
            "C" => Self::C,
            "D" => Self::D,
            "n/a" => Self::NotApplicable,
            _ => bail!("`{text}` is no part: write A, B, C, D or n/a"),
        })
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::A => "A core",
            Self::B => "B engine",
            Self::C => "C worker",
            Self::D => "D performance",
            Self::NotApplicable => "not applicable",
        }
    }
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) line: usize,
    pub(super) id: Id,
    pub(super) sentence: String,
    pub(super) part: Part,
    /// The last column as written.
    pub(super) cell: String,
}

impl Row {
    fn parse(line: usize, text: &str) -> Result<Option<Self>> {
        let cells: Vec<&str> = text.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        let Some(id) = cells.first().and_then(|cell| Id::parse(cell)) else { return Ok(None) };
        let [_, sentence, part, cell] = cells[..] else { bail!("{id} has {} columns, not 4", cells.len()) };
        let part = Part::parse(part).with_context(|| id.to_string())?;
        Ok(Some(Self { line, id, sentence: sentence.to_owned(), part, cell: cell.to_owned() }))
    }

    /// The tests at the start of the last column, and the evidence that people wrote behind them.
    pub(super) fn evidence(&self) -> (Vec<&str>, &str) {
        let (first, rest) = self.cell.split_once("; ").unwrap_or((&self.cell, ""));
        let tests: Option<Vec<&str>> = first.split(", ").map(quoted_test).collect();
        match tests {
            Some(tests) => (tests, rest),
            None => (Vec::new(), &self.cell),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.cell.as_str(), "" | "open")
    }

    /// The last column with the tests that show this row. What people wrote stays; `open` goes when a test comes.
    pub(super) fn filled_cell(&self, shown: &Shown) -> String {
        let (_, kept) = self.evidence();
        let kept = if kept == "open" { "" } else { kept };
        let tests: Vec<String> = shown.tests(&self.id).iter().map(|test| format!("`{test}`")).collect();
        let may_be_open = matches!(self.part, Part::B | Part::C | Part::D);
        match (tests.is_empty(), kept.is_empty()) {
            (true, true) if may_be_open => "open".to_owned(),
            (true, _) => kept.to_owned(),
            (false, true) => tests.join(", "),
            (false, false) => format!("{}; {kept}", tests.join(", ")),
        }
    }

    fn render(&self, cell: &str) -> String {
        let part = if self.part == Part::NotApplicable { "n/a" } else { &self.part.title()[..1] };
        let cell = if cell.is_empty() { String::new() } else { format!(" {cell}") };
        format!("| {} | {} | {part} |{cell} |", self.id, self.sentence)
    }
}

/// `` `a_test` ``: a plain name in backticks. Paths and rules have other letters in them.
fn quoted_test(text: &str) -> Option<&str> {
    let name = text.strip_prefix('`')?.strip_suffix('`')?;
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (plain && !name.is_empty()).then_some(name)
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) rows: Vec<Row>,
}

impl Table {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut rows = Vec::new();
        for (before, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
            rows.extend(Row::parse(before + 1, line).with_context(|| format!("line {}", before + 1))?);
        }
        Ok(Self { rows })
    }

    /// The document with the last column of every row brought up to date.
    pub(super) fn filled(&self, text: &str, shown: &Shown) -> String {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for row in &self.rows {
            lines[row.line - 1] = row.render(&row.filled_cell(shown));
        }
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fn::TestFn;

    const PAGE: &str = "# List\n\n| id | what | part | shown by |\n|---|---|---|---|
| S0-1 | One. | A | |\n| S0-2 | Two. | A | `gone_test`; `docs/a.md` |\n| S1-1 | Three. | B | open |
| S1-2 | Four. | n/a | Nothing older exists. |\n| T-1 | Five. | B | `gone_test` |\nEnd.\n";

    fn shown(doc: &str) -> Shown {
        let (name, file, doc) = ("new_test".into(), "a.rs".into(), doc.into());
        Shown::by(&[TestFn { name, file, line: 1, doc, asserts: true }])
    }

    #[test]
    fn filling_writes_tests_and_keeps_what_people_wrote() {
        let filled = Table::parse(PAGE).unwrap().filled(PAGE, &shown("S0-1, S0-2, S1-1"));
        let expected = "# List\n\n| id | what | part | shown by |\n|---|---|---|---|
| S0-1 | One. | A | `new_test` |\n| S0-2 | Two. | A | `new_test`; `docs/a.md` |\n| S1-1 | Three. | B | `new_test` |
| S1-2 | Four. | n/a | Nothing older exists. |\n| T-1 | Five. | B | open |\nEnd.\n";
        assert_eq!(filled, expected);
        assert_eq!(Table::parse(&filled).unwrap().filled(&filled, &shown("S0-1, S0-2, S1-1")), expected);
    }

    #[test]
    fn a_row_says_which_tests_and_which_evidence_it_names() {
        let row = |cell: &str| Row::parse(1, &format!("| S0-1 | One. | A | {cell} |")).unwrap().unwrap();
        assert_eq!(row("`a_b`, `c`; `docs/a.md`").evidence(), (vec!["a_b", "c"], "`docs/a.md`"));
        assert_eq!(row("`docs/a.md`").evidence(), (vec![], "`docs/a.md`"));
        assert_eq!(row("").evidence(), (vec![], ""));
        assert!(row("").is_open() && row("open").is_open() && !row("`a`").is_open());
    }

    #[test]
    fn a_row_with_a_wrong_shape_is_refused() {
        assert!(Table::parse("| S0-1 | One. | A |\n").is_err());
        assert!(Table::parse("| S0-1 | One. | E | open |\n").is_err());
        assert_eq!(Table::parse("| part | means |\n| A | core |\n").unwrap().rows.len(), 0);
    }
}
