//! The files of the repository, read once.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

use crate::code::Code;

#[derive(Debug)]
pub(crate) struct Source {
    /// From the root, with `/` on every system.
    pub(crate) path: String,
    /// Empty where the file is no text.
    pub(crate) text: String,
    /// For Rust files.
    code: Option<Code>,
}

impl Source {
    fn new(path: String, text: String) -> Result<Self> {
        let code = if path.ends_with(".rs") {
            Some(Code::lex(&text).map_err(|error| anyhow!("{path} cannot be read as Rust: {error}"))?)
        } else {
            None
        };
        Ok(Self { path, text, code })
    }

    /// The lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(before, line)| (before + 1, line))
    }

    /// Whether a line belongs to a test: in a `tests` folder, a `tests.rs`, or under `#[cfg(test)]`.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        let by_place = self.path.split('/').any(|part| part == "tests" || part == "tests.rs");
        by_place || self.code.as_ref().is_some_and(|code| code.test_lines().iter().any(|range| range.contains(&line)))
    }

    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    pub(crate) fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    files: Vec<Source>,
    folders: BTreeSet<String>,
}

impl Tree {
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        for path in paths(root)? {
            let bytes = fs::read(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
            files.push(Source::new(path, String::from_utf8(bytes).unwrap_or_default())?);
        }
        Ok(Self::new(root, files))
    }

    /// A tree of texts, for the tests of the rules.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let read = |(path, text): &(&str, &str)| Source::new((*path).to_owned(), (*text).to_owned()).unwrap();
        Self::new(Path::new("."), files.iter().map(read).collect())
    }

    fn new(root: &Path, files: Vec<Source>) -> Self {
        let mut folders = BTreeSet::new();
        for file in &files {
            let mut folder = file.folder();
            while !folder.is_empty() && folders.insert(folder.to_owned()) {
                folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
            }
        }
        Self { root: root.to_path_buf(), files, folders }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Source> {
        self.files.iter()
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Source> {
        self.files.iter().find(|source| source.path == path)
    }

    /// Whether a file or a folder of this path exists.
    pub(crate) fn holds(&self, path: &str) -> bool {
        self.folders.contains(path) || self.get(path).is_some()
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = (&Source, &Code)> {
        self.files.iter().filter_map(|source| Some((source, source.code.as_ref()?)))
    }

    pub(crate) fn markdown(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|source| source.path.ends_with(".md"))
    }

    /// Every identifier of the Rust sources.
    pub(crate) fn idents(&self) -> BTreeSet<&str> {
        let tokens = self.rust().flat_map(|(_, code)| &code.tokens);
        tokens.filter(|token| token.is_ident()).map(|token| token.text.as_str()).collect()
    }
}

/// The files below `root`, sorted. Walked by hand, so that a source archive is checked like a clone: what the root's
/// `.gitignore` names is left out.
pub(crate) fn paths(root: &Path) -> Result<Vec<String>> {
    let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let ignored: BTreeSet<&str> = ignored.lines().map(|line| line.trim().trim_matches('/')).collect();
    let mut found = Vec::new();
    let mut open = vec![String::new()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(root.join(&folder)).with_context(|| format!("cannot list {folder}"))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if name == ".git" || ignored.contains(name.as_str()) || ignored.contains(path.as_str()) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_exist_as_soon_as_a_file_is_in_them() {
        let tree = Tree::of(&[("crates/core/src/lib.rs", "")]);
        for path in ["crates", "crates/core", "crates/core/src", "crates/core/src/lib.rs"] {
            assert!(tree.holds(path), "{path}");
        }
        assert!(!tree.holds("crates/core/src/gone.rs"));
    }

    #[test]
    fn a_line_is_a_test_by_its_place_or_by_its_attribute() {
        let tree =
            Tree::of(&[("a/tests/b.rs", "fn a() {}\n"), ("a/src/b.rs", "fn a() {}\n#[cfg(test)]\nmod tests {}\n")]);
        assert!(tree.get("a/tests/b.rs").unwrap().is_test(1));
        assert!(!tree.get("a/src/b.rs").unwrap().is_test(1));
        assert!(tree.get("a/src/b.rs").unwrap().is_test(3));
    }

    #[test]
    fn the_walk_finds_this_file_and_leaves_the_build_out() {
        let found = paths(&crate::root()).unwrap();
        assert!(found.iter().any(|path| path == "xtask/src/tree.rs"));
        assert!(!found.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/")));
    }
}
