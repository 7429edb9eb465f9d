//! `mutants`: break the core on purpose, one line at a time, and see which test notices.
//!
//! The list is kept by hand in `xtask/mutants.toml`, because each entry is a mistake somebody could make, with its
//! reason. The work is done on a copy of the tree; the tree itself is never touched.

mod list;
mod trial;
mod workshop;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use self::list::Mutant;
use self::trial::Outcome;
use self::workshop::Workshop;

const LIST: &str = "xtask/mutants.toml";

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    ListOnly,
    Only(Vec<usize>),
    From(usize),
}

impl Choice {
    fn takes(&self, number: usize) -> bool {
        match self {
            Self::ListOnly => false,
            Self::Only(numbers) => numbers.contains(&number),
            Self::From(first) => number >= *first,
        }
    }
}

pub(crate) fn run(root: &Path, options: &[&str]) -> Result<()> {
    let choice = choice(options)?;
    let mutants = list::load(root)?;
    println!("mutants: all {} entries of {LIST} fit their files", mutants.len());
    if choice == Choice::ListOnly {
        for (number, mutant) in (1..).zip(&mutants) {
            println!("{number:>4}  {}  {}", mutant.file, mutant.why);
        }
        return Ok(());
    }
    let chosen: Vec<(usize, &Mutant)> = (1..).zip(&mutants).filter(|(number, _)| choice.takes(*number)).collect();
    if chosen.is_empty() {
        bail!("the list has {} entries, counted from 1", mutants.len());
    }
    try_all(&Workshop::set_up(root)?, &chosen)
}

fn choice(options: &[&str]) -> Result<Choice> {
    let number = |text: &str| text.parse().with_context(|| format!("`{text}` is no number"));
    match options {
        [] => Ok(Choice::From(1)),
        ["--list"] => Ok(Choice::ListOnly),
        ["--only", text] => Ok(Choice::Only(text.split(',').map(number).collect::<Result<_>>()?)),
        ["--from", text] => Ok(Choice::From(number(text)?)),
        _ => bail!("mutants takes --list, --only N,M,… or --from N, not `{}`", options.join(" ")),
    }
}

fn try_all(workshop: &Workshop, chosen: &[(usize, &Mutant)]) -> Result<()> {
    let begin = Instant::now();
    sound(workshop, chosen)?;
    let mut lines = Vec::new();
    let (mut survived, mut broken) = (0, 0);
    for (tried, (number, mutant)) in (1..).zip(chosen) {
        let began = Instant::now();
        let unbroken = workshop.apply(mutant)?;
        let outcome = workshop.trial(mutant);
        workshop.restore(mutant, &unbroken)?;
        let outcome = outcome?;
        survived += usize::from(outcome == Outcome::Passed);
        broken += usize::from(matches!(outcome, Outcome::DoesNotCompile(_)));
        let verdict = match &outcome {
            Outcome::Passed => "SURVIVED: write the test that would notice".to_owned(),
            Outcome::Failed(test) => format!("caught by {test}"),
            Outcome::OutOfTime => format!("caught by the time limit of {} s", mutant.limit),
            Outcome::DoesNotCompile(error) => format!("DOES NOT COMPILE, correct the entry: {error}"),
        };
        println!("{tried:>4} of {}  #{number} in {:.0?}  {verdict}", chosen.len(), began.elapsed());
        let file = mutant.file.trim_start_matches("crates/core/src/");
        lines.push(format!("{number:>4}  {file:<24} {:<80} {verdict}", mutant.why));
    }
    println!("\nmutants: summary, after {:.0?}\n{}", begin.elapsed(), lines.join("\n"));
    if survived + broken > 0 {
        bail!("mutants: {survived} of {} survived, {broken} do not compile", chosen.len());
    }
    println!("mutants: all {} were caught", chosen.len());
    Ok(())
}

/// The unbroken tree must pass, or every mutant would seem caught. Filters are left out: what passes whole passes in part.
fn sound(workshop: &Workshop, chosen: &[(usize, &Mutant)]) -> Result<()> {
    let mut done: Vec<&str> = Vec::new();
    for (_, mutant) in chosen {
        let (build, _) = mutant.build_and_filter();
        if done.contains(&build) {
            continue;
        }
        println!("mutants: the unbroken tree, cargo test {build}");
        match workshop.whole(mutant)? {
            Outcome::Passed => done.push(build),
            outcome => bail!("the unbroken tree does not pass `cargo test {build}`: {outcome:?}"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_choose_what_is_tried() {
        assert_eq!(choice(&[]).unwrap(), Choice::From(1));
        assert_eq!(choice(&["--list"]).unwrap(), Choice::ListOnly);
        assert_eq!(choice(&["--only", "3,9"]).unwrap(), Choice::Only(vec![3, 9]));
        assert_eq!(choice(&["--from", "7"]).unwrap(), Choice::From(7));
        choice(&["--only"]).unwrap_err();
        choice(&["--only", "three"]).unwrap_err();
        assert!(Choice::From(7).takes(7) && !Choice::From(7).takes(6));
    }
}
