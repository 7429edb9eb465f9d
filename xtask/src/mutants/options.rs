//! The command line of `mutants`.

use anyhow::{Context, Result, bail, ensure};

pub(super) const HELP: &str = "mutants takes one of --changed [REV], --crate NAME, --sample N or --breakages, \
     and --seed S, --shard K/N, --only TEXT, --jobs N, --limit SECONDS, --retry-missed, --list";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The kept list of breakages.
    Breakages,
    /// Mutants of the lines that changed since a revision.
    Changed(String),
    /// All mutants of these packages.
    Packages(Vec<String>),
    /// A random choice from the mutants of these packages.
    Sample { packages: Vec<String>, count: usize, seed: u64 },
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) source: Source,
    /// One part of so many, the first is 1.
    pub(super) shard: (usize, usize),
    /// Only mutants whose name contains this.
    pub(super) only: Option<String>,
    /// How many copies of the tree are used at a time.
    pub(super) jobs: usize,
    /// Seconds that the tests of one mutant may take.
    pub(super) limit: u64,
    /// Try again what was missed before.
    pub(super) retry_missed: bool,
    pub(super) only_list: bool,
}

/// The crates that a sample is taken from, unless `--crate` names others.
const SAMPLED: [&str; 4] = ["core", "store", "engine", "worker"];

impl Options {
    pub(super) fn parse(words: &[&str]) -> Result<Self> {
        let mut given = Given::default();
        let mut options = Self {
            source: Source::Breakages,
            shard: (1, 1),
            only: None,
            jobs: 1,
            limit: 300,
            retry_missed: false,
            only_list: false,
        };
        let mut rest = words;
        loop {
            rest = match rest {
                [] => break,
                ["--breakages", rest @ ..] => given.breakages(rest),
                ["--changed", rev, rest @ ..] if !rev.starts_with("--") => given.changed(rev, rest),
                ["--changed", rest @ ..] => given.changed("HEAD", rest),
                ["--crate", name, rest @ ..] => given.package(name, rest),
                ["--sample", count, rest @ ..] => {
                    given.sample = Some(number(count)?);
                    rest
                }
                ["--seed", seed, rest @ ..] => {
                    given.seed = Some(number(seed)? as u64);
                    rest
                }
                ["--shard", shard, rest @ ..] => {
                    options.shard = parse_shard(shard)?;
                    rest
                }
                ["--only", text, rest @ ..] => {
                    options.only = Some((*text).to_owned());
                    rest
                }
                ["--jobs", jobs, rest @ ..] => {
                    options.jobs = number(jobs)?.max(1);
                    rest
                }
                ["--limit", seconds, rest @ ..] => {
                    options.limit = number(seconds)? as u64;
                    rest
                }
                ["--retry-missed", rest @ ..] => {
                    options.retry_missed = true;
                    rest
                }
                ["--list", rest @ ..] => {
                    options.only_list = true;
                    rest
                }
                [other, ..] => bail!("unknown option `{other}`: {HELP}"),
            }
        }
        options.source = given.source()?;
        Ok(options)
    }
}

/// What was said about which mutants to try.
#[derive(Default)]
struct Given {
    breakages: bool,
    changed: Option<String>,
    packages: Vec<String>,
    sample: Option<usize>,
    seed: Option<u64>,
}

impl Given {
    fn breakages<'a>(&mut self, rest: &'a [&'a str]) -> &'a [&'a str] {
        self.breakages = true;
        rest
    }

    fn changed<'a>(&mut self, rev: &str, rest: &'a [&'a str]) -> &'a [&'a str] {
        self.changed = Some(rev.to_owned());
        rest
    }

    fn package<'a>(&mut self, name: &str, rest: &'a [&'a str]) -> &'a [&'a str] {
        self.packages.push(package(name));
        rest
    }

    fn source(self) -> Result<Source> {
        ensure!(self.seed.is_none() || self.sample.is_some(), "--seed needs --sample: {HELP}");
        match (self.breakages, self.changed, self.packages, self.sample) {
            (true, None, packages, None) if packages.is_empty() => Ok(Source::Breakages),
            (false, Some(rev), packages, None) if packages.is_empty() => Ok(Source::Changed(rev)),
            (false, None, packages, Some(count)) => {
                let sampled = SAMPLED.iter().map(|name| package(name)).collect();
                let packages = if packages.is_empty() { sampled } else { packages };
                Ok(Source::Sample { packages, count, seed: self.seed.unwrap_or(1) })
            }
            (false, None, packages, None) if !packages.is_empty() => Ok(Source::Packages(packages)),
            _ => bail!("{HELP}"),
        }
    }
}

/// The package of a crate that is named as its folder is: `core` is `dacapo-core`.
fn package(name: &str) -> String {
    if name.starts_with("dacapo") { name.to_owned() } else { format!("dacapo-{name}") }
}

fn number(text: &str) -> Result<usize> {
    text.parse().with_context(|| format!("invalid number `{text}`: {HELP}"))
}

fn parse_shard(text: &str) -> Result<(usize, usize)> {
    let (part, parts) = text.split_once('/').with_context(|| format!("invalid shard `{text}`: expected K/N"))?;
    let (part, parts) = (number(part)?, number(parts)?);
    ensure!((1..=parts).contains(&part), "invalid shard `{text}`: expected 1/{parts} to {parts}/{parts}");
    Ok((part, parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(words: &[&str]) -> Source {
        Options::parse(words).unwrap().source
    }

    #[test]
    fn options_say_which_mutants_are_tried() {
        assert_eq!(source(&["--breakages"]), Source::Breakages);
        assert_eq!(source(&["--changed"]), Source::Changed("HEAD".into()));
        assert_eq!(source(&["--changed", "main", "--list"]), Source::Changed("main".into()));
        assert_eq!(source(&["--crate", "core"]), Source::Packages(vec!["dacapo-core".into()]));
        let packages = ["dacapo-core", "dacapo-store", "dacapo-engine", "dacapo-worker"].map(str::to_owned).to_vec();
        let sample = Source::Sample { packages, count: 120, seed: 7 };
        assert_eq!(source(&["--sample", "120", "--seed", "7", "--shard", "2/4"]), sample);
    }

    #[test]
    fn contradictory_and_unknown_options_are_refused() {
        for words in [
            &[][..],
            &["--changed", "--sample", "3"],
            &["--seed", "1", "--crate", "core"],
            &["--shard", "5/4"],
            &["--al"],
        ] {
            Options::parse(words).unwrap_err();
        }
        assert_eq!(Options::parse(&["--breakages", "--shard", "2/4"]).unwrap().shard, (2, 4));
    }
}
