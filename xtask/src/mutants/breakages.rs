//! The kept list of breakages, each a function whose body is replaced.

mod function;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use self::function::Place;
use super::copy::Copy;
use super::options::Options;
use super::results::Outcome;
use super::{Tried, packages, trial};
use crate::modules::Crate;
use crate::tree::Tree;

const LIST: &str = "xtask/breakages.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Breakage {
    /// The folder of its crate under `crates`.
    #[serde(rename = "crate")]
    folder: String,
    /// The end of the function's path: `apply::fence` or `Group::submit`.
    function: String,
    /// What stands between its braces instead.
    body: String,
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

/// A breakage and the function that it replaces.
struct Located {
    breakage: Breakage,
    place: Place,
}

impl Located {
    fn name(&self) -> String {
        format!("{} {}: {}", self.breakage.folder, self.breakage.function, self.breakage.why)
    }

    fn stages(&self) -> Vec<Vec<String>> {
        if !self.breakage.packages.is_empty() {
            return vec![self.breakage.packages.clone()];
        }
        let name = &self.breakage.folder;
        packages::stages(&if name == "dacapo" { name.clone() } else { format!("dacapo-{name}") })
    }
}

pub(super) fn run(root: &Path, options: &Options) -> Result<Tried> {
    let all = load(root)?;
    println!("mutants: all {} entries of {LIST} name a function", all.len());
    let (part, parts) = options.shard;
    let chosen: Vec<Located> = all
        .into_iter()
        .filter(|located| options.only.as_ref().is_none_or(|text| located.name().contains(text)))
        .enumerate()
        .filter_map(|(place, located)| (place % parts == part - 1).then_some(located))
        .collect();
    if options.only_list {
        chosen.iter().for_each(|located| println!("  {}", located.name()));
        return Ok(Tried::new());
    }
    let copies = (0..options.jobs).map(|number| Copy::sync(root, number)).collect::<Result<Vec<_>>>()?;
    check_unbroken(&copies[0], &chosen, options.limit)?;
    try_all(&copies, &chosen, options.limit)
}

/// The list, each entry with its function. All entries that fit no function are reported at once.
fn load(root: &Path) -> Result<Vec<Located>> {
    let text = fs::read_to_string(root.join(LIST)).context(LIST)?;
    let list: List = toml::from_str(&text).context(LIST)?;
    let tree = Tree::load(root)?;
    let (mut located, mut misfits, mut crates) = (Vec::new(), Vec::new(), BTreeMap::new());
    for breakage in list.breakage {
        let folder = &breakage.folder;
        if !crates.contains_key(folder) {
            let modules = Crate::load(&tree, &format!("crates/{folder}"))?;
            crates
                .insert(folder.clone(), modules.with_context(|| format!("{LIST}: there is no crate crates/{folder}"))?);
        }
        match function::find(&crates[folder], folder, &breakage.function) {
            Ok(place) => located.push(Located { breakage, place }),
            Err(error) => misfits.push(format!("  {error:#}")),
        }
    }
    if !misfits.is_empty() {
        bail!("{} entries of {LIST} fit no function:\n{}", misfits.len(), misfits.join("\n"));
    }
    Ok(located)
}

/// The unbroken tree has to pass, or every breakage would seem to be caught.
fn check_unbroken(copy: &Copy, chosen: &[Located], limit: u64) -> Result<()> {
    let mut packages: Vec<String> = chosen.iter().flat_map(|located| located.stages().swap_remove(0)).collect();
    packages.sort();
    packages.dedup();
    println!("mutants: the unbroken tree, tests of {}", packages.join(", "));
    match trial::run(&copy.folder, &packages, None, 3 * limit)? {
        (Outcome::Missed, _) => Ok(()),
        (outcome, detail) => bail!("the unbroken tree does not pass its tests ({outcome}): {detail}"),
    }
}

fn try_all(copies: &[Copy], chosen: &[Located], limit: u64) -> Result<Tried> {
    let (next, tried) = (AtomicUsize::new(0), Mutex::new(Tried::new()));
    let work = |copy: &Copy| -> Result<()> {
        while let Some(located) = chosen.get(next.fetch_add(1, Ordering::SeqCst)) {
            let began = Instant::now();
            let (outcome, detail) = try_one(copy, located, limit)?;
            let mut tried = tried.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            tried.insert(located.name(), Some(outcome));
            let (count, all) = (tried.len(), chosen.len());
            println!(
                "{count:>4} of {all}  {outcome:<8} in {:>4.0?}  {}\n{:24}{detail}",
                began.elapsed(),
                located.name(),
                ""
            );
        }
        Ok(())
    };
    let ended: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = copies.iter().map(|copy| scope.spawn(|| work(copy))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that tries breakages does not panic")).collect()
    });
    ended.into_iter().collect::<Result<()>>()?;
    let tried = tried.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some((name, _)) = tried.iter().find(|(_, outcome)| **outcome == Some(Outcome::Unviable)) {
        bail!("{name}\n  the body in {LIST} does not compile: correct the entry");
    }
    Ok(tried)
}

fn try_one(copy: &Copy, located: &Located, limit: u64) -> Result<(Outcome, String)> {
    let file = copy.folder.join(&located.place.file);
    let unbroken = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    fs::write(&file, located.place.replaced(&unbroken, &located.breakage.body))?;
    let mut tried = Ok((Outcome::Missed, String::new()));
    for packages in located.stages() {
        tried = trial::run(&copy.folder, &packages, located.breakage.filter.as_deref(), limit);
        if !matches!(&tried, Ok((Outcome::Missed, _))) {
            break;
        }
    }
    fs::write(&file, unbroken).with_context(|| format!("cannot restore {}", file.display()))?;
    tried
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_of_the_list_names_a_function() {
        let located = load(&crate::root()).unwrap();
        assert!(located.len() >= 25, "{}", located.len());
    }
}
