//! The house rules: what rustfmt and clippy cannot know about this repository.
//!
//! A rule is a name, what to do about its findings, and a function from the tree to findings.

mod core_purity;
mod crates;
mod doc_links;
mod doc_paths;
mod doc_symbols;
mod file_length;
mod first_lines;
mod fixed_ports;
mod licences;
mod locks;
mod manifests;
mod module_cycles;
mod public_calls;
mod quoted_tests;
mod readme_length;
mod registries;
mod retired_words;
mod shape;
mod sleeping_tests;
mod standard_paths;
mod unfinished;
mod unsafe_code;
mod vague_names;
mod versions;

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};

use crate::tree::{Source, Tree};

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    file: String,
    line: usize,
    text: String,
}

impl Finding {
    fn new(source: &Source, line: usize, text: impl Into<String>) -> Self {
        Self::at(&source.path, line, text)
    }

    fn at(file: &str, line: usize, text: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)
    }
}

pub(crate) struct Rule {
    pub(crate) name: &'static str,
    advice: &'static str,
    find: fn(&Tree) -> Result<Vec<Finding>>,
}

pub(crate) const RULES: &[Rule] = &[
    Rule { name: "file-length", advice: "split the file: one noun each", find: |tree| Ok(file_length::find(tree)) },
    Rule { name: "unfinished", advice: "finish it or take it out", find: |tree| Ok(unfinished::find(tree)) },
    Rule {
        name: "sleeping-tests",
        advice: "advance a virtual clock or wait for the event itself, within a bound",
        find: |tree| Ok(sleeping_tests::find(tree)),
    },
    Rule {
        name: "fixed-ports",
        advice: "bind port 0 and ask which one it became",
        find: |tree| Ok(fixed_ports::find(tree)),
    },
    Rule {
        name: "retired-words",
        advice: "use the word that docs/glossary.md gives instead",
        find: retired_words::find,
    },
    Rule {
        name: "vague-names",
        advice: "name the file after the thing in it",
        find: |tree| Ok(vague_names::find(tree)),
    },
    Rule {
        name: "versions",
        advice: "put the version into [workspace.dependencies] and write `name.workspace = true`",
        find: versions::find,
    },
    Rule { name: "manifests", advice: "complete the manifest, or say `publish = false`", find: manifests::find },
    Rule {
        name: "licences",
        advice: "use another crate, or add the licence to the list with care: every user has to comply with it",
        find: licences::find,
    },
    Rule {
        name: "core-purity",
        advice: "the core gets time, seed and payloads as arguments and touches nothing",
        find: core_purity::find,
    },
    Rule {
        name: "locks",
        advice: "take a lock of `dacapo_sync` with a rank that docs/engine.md lists; in the core, `crate::lock::Lock`",
        find: |tree| Ok(locks::find(tree)),
    },
    Rule {
        name: "module-cycles",
        advice: "move what both modules need into a third one, or pass data instead of calling back",
        find: module_cycles::find,
    },
    Rule { name: "function-length", advice: "split the function: one screen each", find: shape::functions },
    Rule { name: "source-length", advice: "split the file: one noun each", find: shape::files },
    Rule { name: "methods", advice: "split the type: each owner holds its own data", find: shape::methods },
    Rule { name: "doc-paths", advice: "correct the path or the document", find: |tree| Ok(doc_paths::find(tree)) },
    Rule {
        name: "doc-symbols",
        advice: "correct the symbol or the document",
        find: |tree| Ok(doc_symbols::find(tree)),
    },
    Rule { name: "doc-links", advice: "correct the link", find: |tree| Ok(doc_links::find(tree)) },
    Rule {
        name: "public-calls",
        advice: "add a row that gives the call something bad, or says why nothing can be",
        find: |tree| Ok(public_calls::find(tree)),
    },
    Rule {
        name: "first-lines",
        advice: "begin with what the item is, or with a verb and its object: lists show this line alone",
        find: |tree| Ok(first_lines::find(tree)),
    },
    Rule {
        name: "unsafe-code",
        advice: "take the workspace's lints, or forbid `unsafe_code` among the crate's own",
        find: unsafe_code::find,
    },
    Rule { name: "readme-length", advice: "move detail into docs/", find: |tree| Ok(readme_length::find(tree)) },
    Rule { name: "quoted-tests", advice: "quote a test that exists", find: |tree| Ok(quoted_tests::find(tree)) },
    Rule {
        name: "registries",
        advice: "the tree names no registry: where crates come from is each machine's own affair",
        find: |tree| Ok(registries::find(tree)),
    },
];

/// Figures that are printed whether a rule enforces them or not.
const REPORTS: &[fn(&Tree) -> Result<String>] = &[module_cycles::report, shape::report];

pub(crate) fn list() {
    for rule in RULES {
        println!("{:<20} {}", rule.name, rule.advice);
    }
}

pub(crate) fn run(root: &Path) -> Result<()> {
    let tree = Tree::load(root)?;
    let mut broken = Vec::new();
    for rule in RULES {
        let findings = (rule.find)(&tree)?;
        if findings.is_empty() {
            println!("  ok      {}", rule.name);
            continue;
        }
        println!("  BROKEN  {}: {}", rule.name, rule.advice);
        for finding in &findings {
            println!("          {finding}");
        }
        broken.push(rule.name);
    }
    for report in REPORTS {
        print!("\n{}", report(&tree)?);
    }
    if !broken.is_empty() {
        bail!("tidy: {} of {} rules are broken: {}", broken.len(), RULES.len(), broken.join(", "));
    }
    println!("tidy: all {} rules hold over {} files", RULES.len(), tree.files().count());
    Ok(())
}

/// A tree's findings as lines of text, for the tests of the rules.
#[cfg(test)]
fn shown(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_rules_share_a_name() {
        let names: std::collections::BTreeSet<_> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), RULES.len());
    }
}
