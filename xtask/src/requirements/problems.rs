//! What is wrong with the table, each problem with what to do about it.

use std::collections::BTreeMap;

use super::id::{Id, SERIES};
use super::shown::Shown;
use super::table::{Part, Row, Table};
use crate::markdown;
use crate::tidy;
use crate::tree::Tree;

pub(super) fn find_problems(table: &Table, shown: &Shown, tree: &Tree) -> Vec<String> {
    let mut problems = sequence(table);
    for row in &table.rows {
        problems.extend(row_problems(row, shown, tree).into_iter().map(|text| format!("{} {text}", row.id)));
    }
    problems.extend(from_tests(table, shown));
    problems
}

/// Every id of every series, once.
fn sequence(table: &Table) -> Vec<String> {
    let mut counts: BTreeMap<Id, usize> = BTreeMap::new();
    for row in &table.rows {
        *counts.entry(row.id).or_default() += 1;
    }
    let all = SERIES.iter().flat_map(|&(series, last)| (1..=last).map(move |number| Id { series, number }));
    let missing = all.filter(|id| !counts.contains_key(id)).map(|id| format!("{id} is missing: write its row"));
    let double = counts.iter().filter(|(_, count)| **count > 1).map(|(id, _)| format!("{id} has two rows: keep one"));
    missing.chain(double).collect()
}

fn row_problems(row: &Row, shown: &Shown, tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    if row.sentence.is_empty() {
        problems.push("says nothing: write its sentence".to_owned());
    }
    if row.part == Part::NotApplicable {
        if row.is_open() {
            problems.push("does not apply and does not say why: write the reason".to_owned());
        }
        return problems;
    }
    let (tests, evidence) = row.evidence();
    for test in tests {
        if !shown.exists(test) {
            problems.push(format!("names `{test}`, which is no test: run `cargo xtask requirements --fill`"));
        } else if !shown.tests(&row.id).contains(&test) {
            problems.push(format!("names `{test}`, which does not name {} in its doc comment", row.id));
        }
    }
    problems.extend(evidence_problems(evidence, tree));
    if !problems.is_empty() {
        return problems;
    }
    if row.is_open() && shown.tests(&row.id).is_empty() {
        if row.part == Part::A {
            problems.push(format!("has no test: name {} in the doc comment of the test that shows it", row.id));
        }
    } else if row.filled_cell(shown) != row.cell {
        problems.push("does not name all its tests: run `cargo xtask requirements --fill`".to_owned());
    }
    problems
}

/// Evidence other than tests: a path of the tree or a rule of tidy, in backticks.
fn evidence_problems(evidence: &str, tree: &Tree) -> Vec<String> {
    if evidence.is_empty() || evidence == "open" {
        return Vec::new();
    }
    let spans = markdown::spans(evidence);
    if spans.is_empty() {
        return vec!["names no test, path or rule in backticks; a reason needs the part n/a".to_owned()];
    }
    let wrong = spans.iter().filter_map(|span| match span.text.strip_prefix("cargo xtask tidy: ") {
        Some(rule) if tidy::RULES.iter().any(|known| known.name == rule) => None,
        Some(rule) => Some(format!("names the rule `{rule}`, which tidy does not have")),
        None if tree.holds(span.text.trim_end_matches('/')) => None,
        None => Some(format!("names `{}`, which is no file of the tree", span.text)),
    });
    wrong.collect()
}

fn from_tests(table: &Table, shown: &Shown) -> Vec<String> {
    let known = |id: &Id| table.rows.iter().any(|row| row.id == *id);
    let unknown = shown.named.iter().filter(|(_, id)| !known(id));
    let unknown = unknown.map(|(place, id)| format!("{place} names {id}, which the table does not have"));
    let hollow = shown.hollow.iter().map(|(place, id)| format!("{place} names {id} and asserts nothing"));
    unknown.chain(hollow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fn::TestFn;

    fn problems(rows: &str, tests: &[(&str, &str, bool)]) -> Vec<String> {
        let tests: Vec<TestFn> = tests
            .iter()
            .map(|(name, doc, asserts)| TestFn {
                name: (*name).into(),
                file: "a.rs".into(),
                line: 1,
                doc: (*doc).into(),
                asserts: *asserts,
            })
            .collect();
        let tree = Tree::of(&[("docs/a.md", "")]);
        let found = find_problems(&Table::parse(rows).unwrap(), &Shown::by(&tests), &tree);
        found.into_iter().filter(|problem| !problem.ends_with("is missing: write its row")).collect()
    }

    #[test]
    fn rows_that_are_in_order_pass() {
        let rows = "| S0-1 | One. | A | `a_test` |\n| S0-2 | Two. | A | `docs/a.md`, `cargo xtask tidy: core-purity` |
| S0-3 | Three. | B | open |\n| S0-4 | Four. | n/a | Nothing older exists. |\n";
        assert_eq!(problems(rows, &[("a_test", "S0-1", true)]), [""; 0]);
    }

    #[test]
    fn a_row_of_the_core_needs_a_test() {
        let expected = ["S0-1 has no test: name S0-1 in the doc comment of the test that shows it"];
        assert_eq!(problems("| S0-1 | One. | A | |\n", &[]), expected);
        assert_eq!(problems("| S0-1 | One. | A | open |\n", &[]), expected);
        let expected = ["S0-1 names no test, path or rule in backticks; a reason needs the part n/a"];
        assert_eq!(problems("| S0-1 | One. | A | Surely. |\n", &[]), expected);
        let expected = ["S0-1 does not apply and does not say why: write the reason"];
        assert_eq!(problems("| S0-1 | One. | n/a | |\n", &[]), expected);
    }

    #[test]
    fn table_and_tests_must_agree() {
        let expected = ["S0-1 names `gone`, which is no test: run `cargo xtask requirements --fill`"];
        assert_eq!(problems("| S0-1 | One. | A | `gone` |\n", &[]), expected);
        let expected = ["S0-1 names `other`, which does not name S0-1 in its doc comment"];
        assert_eq!(problems("| S0-1 | One. | A | `other` |\n", &[("other", "", true)]), expected);
        let expected = ["S0-1 does not name all its tests: run `cargo xtask requirements --fill`"];
        assert_eq!(problems("| S0-1 | One. | A | |\n", &[("a_test", "S0-1", true)]), expected);
        assert_eq!(problems("| S0-1 | One. | B | open |\n", &[("a_test", "S0-1", true)]), expected);
    }

    #[test]
    fn evidence_that_does_not_exist_is_reported() {
        let expected = [
            "S0-1 names `docs/b.md`, which is no file of the tree",
            "S0-1 names the rule `none`, which tidy does not have",
        ];
        assert_eq!(problems("| S0-1 | One. | A | `docs/b.md`, `cargo xtask tidy: none` |\n", &[]), expected);
    }

    #[test]
    fn a_test_may_name_known_ids_only_and_must_assert() {
        let expected = [
            "S0-1 has no test: name S0-1 in the doc comment of the test that shows it",
            "a.rs:1: `a_test` names S0-78, which the table does not have",
            "a.rs:1: `b_test` names S0-1 and asserts nothing",
        ];
        let tests = [("a_test", "S0-78", true), ("b_test", "S0-1", false)];
        assert_eq!(problems("| S0-1 | One. | A | |\n", &tests), expected);
    }

    #[test]
    fn a_lost_row_and_a_double_row_are_noticed() {
        let table = Table::parse("| S0-1 | One. | B | open |\n| S0-1 | One. | B | open |\n").unwrap();
        let found = sequence(&table);
        assert_eq!(found.first().map(String::as_str), Some("S0-2 is missing: write its row"));
        assert_eq!(found.last().map(String::as_str), Some("S0-1 has two rows: keep one"));
        assert_eq!(found.len(), 323);
    }
}
