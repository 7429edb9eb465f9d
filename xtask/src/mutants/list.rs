//! The kept list of breakages.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::LIST;

/// One breakage: in `file`, `find` becomes `replace`.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutant {
    pub(super) file: String,
    pub(super) find: String,
    pub(super) replace: String,
    /// What would go wrong for users.
    pub(super) why: String,
    /// The arguments of `cargo test`; what follows ` -- ` goes to the tests themselves, for instance a filter.
    #[serde(default = "core_tests")]
    pub(super) test: String,
    /// Seconds the tests may take; a mutant that hangs them is caught.
    #[serde(default = "two_minutes")]
    pub(super) limit: u64,
}

fn core_tests() -> String {
    "-p dacapo-core --tests".to_owned()
}

const fn two_minutes() -> u64 {
    120
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

impl Mutant {
    /// What to build, and which of its tests to run: all if this is empty.
    pub(super) fn build_and_filter(&self) -> (&str, &str) {
        self.test.split_once(" -- ").unwrap_or((&self.test, ""))
    }

    /// The file's text with the breakage in it. The place must be unmistakable.
    pub(super) fn broken(&self, text: &str) -> Result<String> {
        if self.find == self.replace {
            bail!("`{}` is replaced by itself", self.find);
        }
        match text.matches(&self.find).count() {
            1 => Ok(text.replacen(&self.find, &self.replace, 1)),
            count => bail!("`{}` occurs {count} times in {}; it must occur once", self.find, self.file),
        }
    }
}

/// The list, every entry checked against its file, all misfits reported at once.
pub(super) fn load(root: &Path) -> Result<Vec<Mutant>> {
    let text = fs::read_to_string(root.join(LIST)).context(LIST)?;
    let mutants = parse(&text)?;
    let mut misfits = Vec::new();
    for (number, mutant) in (1..).zip(&mutants) {
        let broken = fs::read_to_string(root.join(&mutant.file))
            .with_context(|| mutant.file.clone())
            .and_then(|text| mutant.broken(&text));
        if let Err(error) = broken {
            misfits.push(format!("{number:>4}  {error:#}"));
        }
    }
    if !misfits.is_empty() {
        bail!("these entries of {LIST} no longer fit:\n{}", misfits.join("\n"));
    }
    Ok(mutants)
}

fn parse(text: &str) -> Result<Vec<Mutant>> {
    Ok(toml::from_str::<List>(text).context(LIST)?.mutant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_defaults_and_no_unknown_field() {
        let entry = "[[mutant]]\nfile = \"a.rs\"\nfind = \"<\"\nreplace = \">\"\nwhy = \"turned\"\n";
        let mutant = &parse(entry).unwrap()[0];
        assert_eq!((mutant.test.as_str(), mutant.limit), ("-p dacapo-core --tests", 120));
        parse(&format!("{entry}finds = \"a\"\n")).unwrap_err();
    }

    #[test]
    fn the_place_must_occur_exactly_once() {
        let mutant =
            &parse("[[mutant]]\nfile = \"a.rs\"\nfind = \"<\"\nreplace = \">\"\nwhy = \"turned\"\n").unwrap()[0];
        assert_eq!(mutant.broken("a < b").unwrap(), "a > b");
        assert_eq!(mutant.broken("a").unwrap_err().to_string(), "`<` occurs 0 times in a.rs; it must occur once");
        assert_eq!(mutant.broken("< <").unwrap_err().to_string(), "`<` occurs 2 times in a.rs; it must occur once");
    }
}
