//! The kept list of breakages, each a function whose body is replaced, or a function or constant that lacks a part.

mod function;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use self::function::Place;
use super::packages;
use super::results::{Key, hash};
use super::tries::Mutant;
use crate::modules::Crate;
use crate::tree::Tree;

const LIST: &str = "xtask/breakages.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Breakage {
    /// The folder of its crate under `crates`.
    #[serde(rename = "crate")]
    folder: String,
    /// The end of the path of a function or constant: `apply::fence`, `Group::submit` or `membership::FENCE`.
    function: String,
    /// The text that stands between its braces instead.
    body: Option<String>,
    /// The only part of its text that is replaced, if not all of it is.
    without: Option<String>,
    /// The text in the place of that part; none by default.
    #[serde(default)]
    with: String,
    /// What goes wrong for users.
    why: String,
    /// The packages whose tests notice it, if they are not those of the crate.
    #[serde(default)]
    packages: Vec<String>,
    /// Only tests whose name contains this.
    filter: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    breakage: Vec<Breakage>,
}

/// The list, each entry with its function. All entries that fit no function are reported at once.
pub(super) fn load(root: &Path) -> Result<Vec<Mutant>> {
    let text = fs::read_to_string(root.join(LIST)).context(LIST)?;
    let list: List = toml::from_str(&text).context(LIST)?;
    let tree = Tree::load(root)?;
    let (mut mutants, mut misfits, mut crates) = (Vec::new(), Vec::new(), BTreeMap::new());
    for breakage in list.breakage {
        let folder = &breakage.folder;
        if !crates.contains_key(folder) {
            let modules = Crate::load(&tree, &format!("crates/{folder}"))?;
            crates
                .insert(folder.clone(), modules.with_context(|| format!("{LIST}: there is no crate crates/{folder}"))?);
        }
        match function::find(&crates[folder], folder, &breakage.function) {
            Ok(place) => match breakage.change(place, &tree) {
                Ok((place, text)) => mutants.push(breakage.mutant(place, text, &tree)),
                Err(error) => misfits.push(format!("  {error:#}")),
            },
            Err(error) => misfits.push(format!("  {error:#}")),
        }
    }
    if !misfits.is_empty() {
        bail!("{} entries of {LIST} fit no function:\n{}", misfits.len(), misfits.join("\n"));
    }
    Ok(mutants)
}

impl Breakage {
    /// Returns the bytes that are replaced, and the text in their place.
    fn change(&self, Place { file, body }: Place, tree: &Tree) -> Result<(Place, String)> {
        let all = tree.get(&file).map_or("", |source| &source.text[body.clone()]);
        let function = &self.function;
        match (&self.body, &self.without) {
            (Some(text), None) => Ok((Place { file, body }, text.clone())),
            (None, Some(part)) => {
                let places: Vec<usize> = all.match_indices(part.as_str()).map(|(at, _)| body.start + at).collect();
                let [at] = places[..] else {
                    bail!("`{function}` has {part:?} {} times: give a part that it has once", places.len())
                };
                Ok((Place { file, body: at..at + part.len() }, self.with.clone()))
            }
            _ => bail!("`{function}` takes either `body` or `without`"),
        }
    }

    fn mutant(self, place: Place, broken: String, tree: &Tree) -> Mutant {
        let name = format!("{} {}: {}", self.folder, self.function, self.why);
        let text = tree.get(&place.file).map_or("", |source| source.text.as_str());
        let change = format!("{}{broken}", self.without.unwrap_or_default());
        let key = Key { mutant: name.clone(), text: hash(hash(0, text.as_bytes()), change.as_bytes()) };
        let stages = match self.packages.is_empty() {
            true if self.folder == "dacapo" => packages::stages("dacapo"),
            true => packages::stages(&format!("dacapo-{}", self.folder)),
            false => vec![self.packages],
        };
        Mutant { key, name, file: place.file, range: place.body, text: broken, stages, filter: self.filter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_of_the_list_names_a_function() {
        let mutants = load(&crate::root()).unwrap();
        assert!(mutants.len() >= 25, "{}", mutants.len());
    }
}
