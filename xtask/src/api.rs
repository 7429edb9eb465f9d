//! `api`: the public interface of `dacapo`, one line for each item, kept in `docs/public-api.txt`.
//!
//! The list comes from rustdoc's JSON. That output is unstable: its reader here is small, and reads what it needs and nothing else.

mod allowed;
mod list;
mod render;
mod rustdoc;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

pub(crate) use self::rustdoc::as_rustdoc;

const PAGE: &str = "docs/public-api.txt";
const HEAD: &str = "# The public interface of `dacapo`. `cargo xtask api --fill` writes this page from the code.\n";

/// Fails if the page is not what the code says, or names types that users do not need.
pub(crate) fn check(root: &Path) -> Result<()> {
    let interface = list::interface(root)?;
    let kept = fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let differences = differences(&kept, &page(&interface.lines));
    let problems = allowed::problems(&interface);
    for line in differences.iter().chain(&problems) {
        println!("  {line}");
    }
    if !differences.is_empty() {
        bail!("{PAGE} differs from the code: if the change is meant, run `cargo xtask api --fill` and commit the page");
    }
    if !problems.is_empty() {
        bail!(
            "{} types are public and should not be: hide them, or give a reason in xtask/src/api/allowed.rs",
            problems.len()
        );
    }
    println!("api: {} public items are as {PAGE} says", interface.lines.len());
    Ok(())
}

/// Writes the page.
pub(crate) fn fill(root: &Path) -> Result<()> {
    let interface = list::interface(root)?;
    fs::write(root.join(PAGE), page(&interface.lines)).with_context(|| format!("cannot write {PAGE}"))?;
    println!("api: {} public items", interface.lines.len());
    for problem in allowed::problems(&interface) {
        println!("  {problem}");
    }
    Ok(())
}

fn page(lines: &[String]) -> String {
    format!("{HEAD}\n{}\n", lines.join("\n"))
}

/// Lines that only one of two pages has.
fn differences(kept: &str, now: &str) -> Vec<String> {
    let without = |one: &str, other: &str, mark: char| -> Vec<String> {
        let other: std::collections::BTreeSet<&str> = other.lines().collect();
        one.lines().filter(|line| !other.contains(line)).map(|line| format!("{mark} {line}")).collect()
    };
    let mut found = without(kept, now, '-');
    found.extend(without(now, kept, '+'));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_show_removed_and_added_lines() {
        assert_eq!(differences("a\nb\n", "b\nc\n"), ["- a", "+ c"]);
        assert_eq!(differences("a\nb\n", "a\nb\n"), [""; 0]);
    }
}
