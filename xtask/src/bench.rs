//! `bench`: builds the bench and the rivals in release, runs them workload by workload, and prints the tables.
//!
//! Systems take turns within a workload, because what a shared machine gives changes from minute to minute.

mod against;
mod ratio;
mod temporal;

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cargo, postgres};

const WORKLOADS: [&str; 6] = ["w1", "w2", "w3", "w4", "w5", "w6"];

/// The rounds of a comparison, unless `--rounds` says otherwise.
const ROUNDS: usize = 8;

/// A program that prints lines of measurements.
struct Program {
    /// Of its file of lines.
    name: &'static str,
    /// The folder of its workspace.
    folder: &'static str,
    package: &'static str,
    features: &'static [&'static str],
    args: &'static [&'static str],
}

const OWN: Program = Program { name: "dacapo", folder: ".", package: "dacapo-bench", features: &[], args: &[] };

const OWN_ON_POSTGRES: Program = Program { features: &["postgres"], ..OWN };

/// The rivals cannot be linked into one program: each workspace has its own SQLite.
const RIVALS: [Program; 3] = [
    DURARE,
    Program { name: "duroxide", args: &["duroxide"], ..DURARE },
    Program { name: "durust", folder: "bench/rivals/durust", package: "dacapo-bench-durust", features: &[], args: &[] },
];

const DURARE: Program = Program {
    name: "durare",
    folder: "bench/rivals",
    package: "dacapo-bench-rivals",
    features: &[],
    args: &["durare"],
};

/// The rivals that have a store in PostgreSQL.
const ON_POSTGRES: [&str; 2] = ["durare", "durust"];

struct Options {
    own: bool,
    quick: bool,
    runs: usize,
    /// The workloads to run; all of them if it is empty.
    only: Vec<String>,
    /// The revision to compare with.
    against: Option<String>,
    /// Whether the worker on a Temporal server is compared with that of Temporal's own SDK.
    temporal: bool,
    /// Whether the systems run on a PostgreSQL server, as far as they can.
    postgres: bool,
}

pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    if let Some(rev) = &options.against {
        return against::run(root, rev, &options);
    }
    if options.temporal {
        return temporal::run(root, &options);
    }
    let mut programs = vec![if options.postgres { &OWN_ON_POSTGRES } else { &OWN }];
    if !options.own {
        programs.extend(RIVALS.iter().filter(|rival| !options.postgres || ON_POSTGRES.contains(&rival.name)));
    }
    for program in &programs {
        program.build(root)?;
    }
    let folder = root.join("target/bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let suffix = if options.postgres { "-postgres" } else { "" };
    let files: Vec<PathBuf> =
        programs.iter().map(|program| folder.join(format!("{}{suffix}.jsonl", program.name))).collect();
    for file in &files {
        fs::write(file, "").with_context(|| format!("cannot write {}", file.display()))?;
    }
    // All systems use one server, which commits durably, in turns.
    let server = if options.postgres { Some(postgres::start(root, &[])?) } else { None };
    let database = server.as_ref().map(dacapo_test_postgres::Server::url);
    for run in 1..=options.runs {
        for workload in WORKLOADS.into_iter().filter(|workload| options.includes(workload)) {
            for (program, file) in programs.iter().zip(&files) {
                println!("run {run} of {}: {workload} on {}", options.runs, program.name);
                program.measure(root, workload, options.quick, database.as_deref(), file)?;
            }
        }
    }
    let mut table = Command::new(OWN.executable(root));
    success(table.arg("table").args(options.postgres.then_some("--database")).args(&files), "the table")
}

/// Builds the bench of Dacapo itself.
pub(crate) fn build(root: &Path) -> Result<()> {
    OWN.build(root)
}

/// The bench of Dacapo itself.
pub(crate) fn executable(root: &Path) -> PathBuf {
    OWN.executable(root)
}

impl Options {
    fn includes(&self, workload: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == workload)
    }

    fn parse(mut words: &[&str]) -> Result<Self> {
        let mut options = Self {
            own: false,
            quick: false,
            runs: 0,
            only: Vec::new(),
            against: None,
            temporal: false,
            postgres: false,
        };
        loop {
            words = match words {
                [] => break,
                ["--own", rest @ ..] => {
                    options.own = true;
                    rest
                }
                ["--quick", rest @ ..] => {
                    options.quick = true;
                    rest
                }
                ["--runs" | "--rounds", runs, rest @ ..] => {
                    options.runs = runs.parse().with_context(|| format!("`{runs}` is no number of runs"))?;
                    rest
                }
                ["--only", names, rest @ ..] => {
                    options.only = names.split(',').map(workload).collect::<Result<_>>()?;
                    rest
                }
                ["--against", rev, rest @ ..] => {
                    options.against = Some((*rev).to_owned());
                    rest
                }
                ["--temporal", rest @ ..] => {
                    options.temporal = true;
                    rest
                }
                ["--postgres", rest @ ..] => {
                    options.postgres = true;
                    rest
                }
                [other, ..] => bail!(
                    "`{other}` is no option of bench: --own, --quick, --runs N, --only w1,w2,…, --against REV, --temporal, --postgres"
                ),
            }
        }
        if options.runs == 0 {
            options.runs = match options {
                Self { against: Some(_), .. } => ROUNDS,
                Self { temporal: true, .. } => temporal::ROUNDS,
                _ => 1,
            };
        }
        Ok(options)
    }
}

fn workload(name: &str) -> Result<String> {
    match WORKLOADS.contains(&name) {
        true => Ok(name.to_owned()),
        false => bail!("unknown workload `{name}`: expected w1 to w6"),
    }
}

impl Program {
    /// Where it is built: beside everything else that is built.
    fn target(&self, root: &Path) -> PathBuf {
        root.join("target").join(if self.folder == "." { "" } else { "rivals" })
    }

    fn executable(&self, root: &Path) -> PathBuf {
        self.target(root).join("release").join(self.package).with_extension(std::env::consts::EXE_EXTENSION)
    }

    fn build(&self, root: &Path) -> Result<()> {
        let mut command = cargo::command(&root.join(self.folder));
        cargo::forget_target_folder(&mut command);
        command.args(["build", "--release", "--locked", "--package", self.package]);
        command.args(self.features.iter().flat_map(|feature| ["--features", feature]));
        success(command.arg("--target-dir").arg(self.target(root)), self.package)
    }

    /// Appends the lines of a workload to a file. It is run in this database, if one is given.
    fn measure(&self, root: &Path, workload: &str, quick: bool, database: Option<&str>, file: &Path) -> Result<()> {
        let lines =
            OpenOptions::new().append(true).open(file).with_context(|| format!("cannot open {}", file.display()))?;
        let mut command = Command::new(self.executable(root));
        command.current_dir(root).args(self.args).args(["--only", workload]);
        command.args(quick.then_some("--quick")).args(database.map(|url| ["--url", url]).into_iter().flatten());
        command.stdout(lines);
        success(&mut command, self.name)
    }
}

fn success(command: &mut Command, what: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {what}"))?;
    if !status.success() {
        bail!("{what} failed: {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_unknown_ones_refused() {
        let options = Options::parse(&["--quick", "--runs", "3"]).unwrap();
        assert_eq!((options.own, options.quick, options.runs), (false, true, 3));
        let error = Options::parse(&["--fast"]).err().unwrap().to_string();
        let expected = "`--fast` is no option of bench: --own, --quick, --runs N, --only w1,w2,…, --against REV, --temporal, \
             --postgres";
        assert_eq!(error, expected);
        let options = Options::parse(&["--rounds", "3", "--against", "main", "--only", "w1,w4"]).unwrap();
        assert_eq!((options.against.as_deref(), options.runs), (Some("main"), 3));
        assert_eq!(
            (Options::parse(&["--against", "main"]).unwrap().runs, Options::parse(&[]).unwrap().runs),
            (ROUNDS, 1)
        );
        assert_eq!(Options::parse(&["--temporal"]).unwrap().runs, temporal::ROUNDS);
        assert!(options.includes("w4") && !options.includes("w2"));
        assert!(Options::parse(&["--postgres", "--quick"]).unwrap().postgres);
        assert!(Options::parse(&["--only", "w9"]).is_err());
    }

    #[test]
    fn rivals_on_postgres_are_rivals() {
        assert!(ON_POSTGRES.iter().all(|name| RIVALS.iter().any(|rival| rival.name == *name)));
    }

    #[test]
    fn every_program_has_a_manifest_and_a_lock_file() {
        for program in RIVALS.iter().chain([&OWN, &temporal::PROGRAM]) {
            let folder = crate::root().join(program.folder);
            assert!(folder.join("Cargo.lock").exists() && folder.join("Cargo.toml").exists(), "{}", program.name);
        }
    }
}
