//! The mutants that `cargo-mutants` makes: lists them and chooses from them.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::options::{Options, Source};
use super::results::{Key, hash};
use super::tries::Mutant;
use super::{home, packages, tool};

/// A mutant as `cargo-mutants` lists it.
#[derive(Clone, Debug, Deserialize)]
struct Listed {
    /// `crates/store/src/apply.rs:36:17: replace && with || in apply`
    name: String,
    package: String,
    file: String,
    span: Span,
    replacement: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Span {
    start: Point,
    end: Point,
}

/// A place in a file, both counted from 1, columns in characters.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Point {
    line: usize,
    column: usize,
}

/// The mutants that were asked for.
pub(super) fn load(root: &Path, options: &Options) -> Result<Vec<Mutant>> {
    let listed = list(root, &tool::installed(root)?, &options.source)?;
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for mutant in &listed {
        if !texts.contains_key(&mutant.file) {
            let text =
                fs::read_to_string(root.join(&mutant.file)).with_context(|| format!("cannot read {}", mutant.file))?;
            texts.insert(mutant.file.clone(), text);
        }
    }
    let mut mutants = choose(named(listed), options);
    // Neighbours need the same builds.
    mutants.sort_by(|(_, a), (_, b)| {
        (&a.package, &a.file, a.span.start.line).cmp(&(&b.package, &b.file, b.span.start.line))
    });
    mutants.into_iter().map(|(id, listed)| listed.mutant(id, &texts)).collect()
}

/// The mutants of the packages or of the lines that changed.
fn list(root: &Path, program: &Path, source: &Source) -> Result<Vec<Listed>> {
    let mut command = tool::command(program, root);
    command.args(["--list", "--json", "--colors", "never"]);
    match source {
        Source::Changed(rev) => {
            let diff = Command::new("git").current_dir(root).args(["diff", rev, "--", "crates"]).output()?;
            ensure!(diff.status.success(), "git diff {rev}: {}", String::from_utf8_lossy(&diff.stderr).trim());
            let file = home(root).join("changed.diff");
            fs::create_dir_all(home(root))?;
            fs::write(&file, diff.stdout).with_context(|| format!("cannot write {}", file.display()))?;
            command.arg("--in-diff").arg(file);
        }
        Source::Packages(packages) | Source::Sample { packages, .. } => {
            command.args(packages.iter().flat_map(|package| ["--package", package]));
        }
        Source::Breakages => {}
    }
    let output = command.output().context("cannot start cargo-mutants")?;
    ensure!(output.status.success(), "cargo mutants --list: {}", String::from_utf8_lossy(&output.stderr).trim());
    // There is no list at all where a diff touches no code.
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.trim_start().starts_with('[') {
        return Ok(Vec::new());
    }
    serde_json::from_str(&text).context("cannot read the list of cargo-mutants")
}

/// Gives each mutant a name that stays when lines above it change: its own without the line, and which of those it is that share it.
fn named(listed: Vec<Listed>) -> Vec<(String, Listed)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let named = listed.into_iter().map(|listed| {
        let what = listed.name.splitn(4, ':').nth(3).unwrap_or(&listed.name).trim();
        let place = format!("{}: {what}", listed.file);
        let count = seen.entry(place.clone()).or_default();
        *count += 1;
        (format!("{place} #{count}"), listed)
    });
    named.collect()
}

/// Takes the sample, which is the same wherever it is taken.
fn choose(mut mutants: Vec<(String, Listed)>, options: &Options) -> Vec<(String, Listed)> {
    if let Source::Sample { count, seed, .. } = &options.source {
        mutants.sort_by_key(|(id, _)| hash(*seed, id.as_bytes()));
        mutants.truncate(*count);
    }
    mutants
}

impl Listed {
    fn mutant(self, id: String, texts: &BTreeMap<String, String>) -> Result<Mutant> {
        let text = &texts[&self.file];
        let range = bytes(text, self.span).with_context(|| format!("{} is outside of its file", self.name))?;
        let key = Key { mutant: id, text: hash(hash(0, text.as_bytes()), self.replacement.as_bytes()) };
        let stages = packages::stages(&self.package);
        Ok(Mutant { key, name: self.name, file: self.file, range, text: self.replacement, stages, filter: None })
    }
}

/// The bytes of a span.
fn bytes(text: &str, span: Span) -> Option<Range<usize>> {
    let place = |point: Point| {
        let before: usize = text.split_inclusive('\n').take(point.line.checked_sub(1)?).map(str::len).sum();
        let line = text.get(before..)?;
        let (place, _) = line.char_indices().chain([(line.len(), ' ')]).nth(point.column.checked_sub(1)?)?;
        Some(before + place)
    };
    Some(place(span.start)?..place(span.end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(names: &[&str]) -> Vec<Listed> {
        let point = Point { line: 1, column: 1 };
        let listed = names.iter().map(|name| Listed {
            name: (*name).to_owned(),
            package: "dacapo-core".to_owned(),
            file: name.split(':').next().unwrap().to_owned(),
            span: Span { start: point, end: point },
            replacement: String::new(),
        });
        listed.collect()
    }

    #[test]
    fn mutant_keeps_its_id_when_lines_above_it_change() {
        let ids = |names: &[&str]| named(listed(names)).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
        let expected =
            ["a.rs: replace && with || in f #1", "a.rs: replace && with || in f #2", "b.rs: delete ! in g::h #1"];
        let names =
            ["a.rs:3:17: replace && with || in f", "a.rs:4:1: replace && with || in f", "b.rs:1:1: delete ! in g::h"];
        assert_eq!(ids(&names), expected);
        assert_eq!(ids(&["a.rs:9:9: replace && with || in f"]), expected[..1]);
    }

    #[test]
    fn sample_depends_on_the_seed_alone() {
        let names: Vec<String> = (0..50).map(|n| format!("a.rs:{n}:1: delete ! in f{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let sample = |names: &[&str], seed: &str| -> Vec<String> {
            let options = Options::parse(&["--sample", "10", "--seed", seed]).unwrap();
            choose(named(listed(names)), &options).into_iter().map(|(id, _)| id).collect()
        };
        let reversed: Vec<&str> = names.iter().rev().copied().collect();
        assert_eq!(sample(&names, "1").len(), 10);
        assert_eq!(sample(&names, "1"), sample(&reversed, "1"));
        assert_ne!(sample(&names, "1"), sample(&names, "2"));
    }

    #[test]
    fn span_counts_lines_and_characters_from_one() {
        let text = "é: u8\n  éa && b\n";
        let span = |line, from, to| Span { start: Point { line, column: from }, end: Point { line, column: to } };
        assert_eq!(&text[bytes(text, span(2, 6, 8)).unwrap()], "&&");
        assert_eq!(&text[bytes(text, span(1, 1, 2)).unwrap()], "é");
        assert_eq!(bytes(text, span(9, 1, 2)), None);
    }
}
