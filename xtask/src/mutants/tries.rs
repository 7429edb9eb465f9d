//! Tries mutants in copies of the tree and keeps the results.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use dacapo_test_postgres::Server;

use super::copy::Copy;
use super::options::Options;
use super::packages::features_on_a_server;
use super::results::{Key, Outcome, Results, hash};
use super::trial::Rules;
use super::{Tried, home, trial};
use crate::postgres;

/// One change of one file.
#[derive(Debug)]
pub(super) struct Mutant {
    pub(super) key: Key,
    /// What is shown of it.
    pub(super) name: String,
    pub(super) file: String,
    /// The bytes that `text` replaces.
    pub(super) range: Range<usize>,
    pub(super) text: String,
    /// The packages whose tests are run: a later stage is for what the earlier ones miss.
    pub(super) stages: Vec<Vec<String>>,
    /// Only tests whose name contains this.
    pub(super) filter: Option<String>,
}

impl Mutant {
    fn applied(&self, unbroken: &str) -> String {
        let Range { start, end } = self.range;
        format!("{} {} {}", &unbroken[..start], self.text, &unbroken[end..])
    }

    /// Tries it in a copy, which is whole again afterwards.
    fn run(&self, copy: &Copy, rules: &Rules<'_>) -> Result<(Outcome, String)> {
        let file = copy.folder.join(&self.file);
        let unbroken = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        fs::write(&file, self.applied(&unbroken)).with_context(|| format!("cannot write {}", file.display()))?;
        let mut tried = Ok((Outcome::Missed, String::new()));
        for packages in &self.stages {
            tried = trial::run(&copy.folder, packages, self.filter.as_deref(), rules);
            if !matches!(&tried, Ok((Outcome::Missed, _))) {
                break;
            }
        }
        fs::write(&file, unbroken).with_context(|| format!("cannot restore {}", file.display()))?;
        tried
    }
}

/// Tries all mutants that have no result yet and gives the results of all.
pub(super) fn run(root: &Path, mutants: &[Mutant], options: &Options) -> Result<Tried> {
    let mut results = Results::load(&home(root))?;
    if options.retry_missed {
        results.forget_missed();
    }
    let pending: Vec<&Mutant> = mutants.iter().filter(|mutant| results.get(&mutant.key).is_none()).collect();
    println!("mutants: {} chosen, {} of them have a result already", mutants.len(), mutants.len() - pending.len());
    if !pending.is_empty() {
        let copies = (0..options.jobs).map(|number| Copy::sync(root, number)).collect::<Result<Vec<_>>>()?;
        let needs_server = |mutant: &&Mutant| mutant.stages.iter().any(|stage| !features_on_a_server(stage).is_empty());
        let server = pending.iter().any(needs_server).then(|| postgres::start(root, &[])).transpose()?;
        let url = server.as_ref().map(Server::url);
        let rules = Rules { limit: options.limit, database: url.as_deref() };
        check_unbroken(&copies[0], &pending, &rules, &mut results)?;
        try_all(&copies, &pending, &rules, &mut results)?;
    }
    Ok(mutants.iter().map(|mutant| (mutant.name.clone(), results.get(&mutant.key))).collect())
}

/// The unbroken tree has to pass, or every mutant would seem to be caught. That it does is kept like a result.
fn check_unbroken(copy: &Copy, pending: &[&Mutant], rules: &Rules<'_>, results: &mut Results) -> Result<()> {
    let mut packages: Vec<String> = pending.iter().flat_map(|mutant| mutant.stages.iter().flatten().cloned()).collect();
    packages.sort();
    packages.dedup();
    let key = Key { mutant: format!("unbroken: {}", packages.join(", ")), text: copy.hash()? };
    if results.get(&key).is_some() {
        return Ok(());
    }
    println!("mutants: the unbroken tree, tests of {}", packages.join(", "));
    match trial::run(&copy.folder, &packages, None, &Rules { limit: 3 * rules.limit, ..*rules })? {
        (Outcome::Missed, _) => results.keep(key, Outcome::Missed),
        (outcome, detail) => bail!("the unbroken tree does not pass its tests ({outcome}): {detail}"),
    }
}

fn try_all(copies: &[Copy], pending: &[&Mutant], rules: &Rules<'_>, results: &mut Results) -> Result<()> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new((0, results)));
    let work = |copy: &Copy| -> Result<()> {
        while let Some(mutant) = pending.get(next.fetch_add(1, Ordering::SeqCst)) {
            let began = Instant::now();
            let (outcome, detail) = mutant.run(copy, rules)?;
            let mut kept = results.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            kept.0 += 1;
            kept.1.keep(mutant.key.clone(), outcome)?;
            let (count, all, taken) = (kept.0, pending.len(), began.elapsed().as_secs());
            println!("{count:>4} of {all}  {outcome:<8} in {taken:>3} s  {}\n{:30}{detail}", mutant.name, "");
        }
        Ok(())
    };
    let ended: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = copies.iter().map(|copy| scope.spawn(|| work(copy))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that tries mutants does not panic")).collect()
    });
    ended.into_iter().collect()
}

impl Copy {
    /// A hash of all its files.
    fn hash(&self) -> Result<u64> {
        let mut sum = 0;
        for path in crate::tree::paths(&self.folder)? {
            sum = hash(hash(sum, path.as_bytes()), &fs::read(self.folder.join(&path))?);
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutant_replaces_its_bytes_and_nothing_else() {
        let mutant = Mutant {
            key: Key { mutant: String::new(), text: 0 },
            name: String::new(),
            file: String::new(),
            range: 7..9,
            text: "||".to_owned(),
            stages: Vec::new(),
            filter: None,
        };
        assert_eq!(mutant.applied("f() { a&&b }"), "f() { a || b }");
    }
}
