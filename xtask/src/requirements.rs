//! `docs/requirements.md` against the tests: which test shows each requirement, and which requirement has none.
//!
//! An id counts only in the doc comment of a test that asserts something, and the table's last column is written by
//! `--fill` from those comments, so that table and tests cannot drift apart.

mod id;
mod problems;
mod shown;
mod table;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use self::problems::find_problems;
use self::shown::Shown;
use self::table::{Part, Table};
use crate::test_fn;
use crate::tree::Tree;

const TABLE: &str = "docs/requirements.md";

pub(crate) fn check(root: &Path) -> Result<()> {
    let tree = Tree::load(root)?;
    let table = read(&tree)?;
    let shown = Shown::by(&test_fn::all(&tree));
    summary(&table, &shown);
    let problems = find_problems(&table, &shown, &tree);
    for problem in &problems {
        println!("  {problem}");
    }
    if !problems.is_empty() {
        bail!("requirements: {} problems in {TABLE}", problems.len());
    }
    println!("requirements: all {} rows are in order", table.rows.len());
    Ok(())
}

pub(crate) fn fill(root: &Path) -> Result<()> {
    let tree = Tree::load(root)?;
    let source = tree.get(TABLE).context(TABLE)?;
    let filled = read(&tree)?.filled(&source.text, &Shown::by(&test_fn::all(&tree)));
    if filled == source.text {
        println!("requirements: {TABLE} already names every test");
    } else {
        fs::write(root.join(TABLE), filled).context(TABLE)?;
        println!("requirements: {TABLE} now names every test");
    }
    Ok(())
}

fn read(tree: &Tree) -> Result<Table> {
    let source = tree.get(TABLE).with_context(|| format!("{TABLE} is missing"))?;
    Table::parse(&source.text).with_context(|| format!("cannot read {TABLE}"))
}

fn summary(table: &Table, shown: &Shown) {
    for part in [Part::A, Part::B, Part::C, Part::D, Part::NotApplicable] {
        let rows: Vec<_> = table.rows.iter().filter(|row| row.part == part).collect();
        let by_test = rows.iter().filter(|row| !shown.tests(&row.id).is_empty()).count();
        let open: Vec<_> = rows.iter().filter(|row| row.is_open() && shown.tests(&row.id).is_empty()).collect();
        let otherwise = rows.len() - by_test - open.len();
        println!(
            "  {:<14} {:>3} rows: {by_test} shown by tests, {otherwise} otherwise, {} open",
            part.title(),
            rows.len(),
            open.len()
        );
        if !open.is_empty() {
            let ids: Vec<String> = open.iter().map(|row| row.id.to_string()).collect();
            println!("{:17}open: {}", "", ids.join(" "));
        }
    }
}
