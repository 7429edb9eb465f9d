//! What the command line asks for.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use dacapo_bench_meter::Size;

pub(crate) const HELP: &str = "\
dacapo-bench [--quick] [--only w1,w2,…] [--dir FOLDER]   run workloads, one line of JSON for each measurement
dacapo-bench … --url postgres://…                        the same in schemas of their own of a PostgreSQL database
dacapo-bench company [--quick] [--dir FOLDER]            turns of healthy runs, alone and in bad company
dacapo-bench growth [--quick] [--dir FOLDER]             what each item costs as things grow
dacapo-bench retention [--quick] [--dir FOLDER]          full load, with and without retention beside it
dacapo-bench plot FILE…                                  the lines of `growth` as a picture (SVG)
dacapo-bench table [--database] FILE…                    such lines as a table, with bars and ratios; or those of a database

  --quick        a little of each workload, to see that it works
  --only         these workloads alone, of w1 to w6
  --dir          where the files are made and removed again: on a real disk (target/bench)
  --url          the database in which schemas are made, and left";

pub(crate) enum Task {
    Help,
    Run(Arguments),
    /// The turns of healthy runs in bad company.
    Company(Arguments),
    /// What each item costs as things grow.
    Growth(Arguments),
    /// Full load, with and without retention.
    Retention(Arguments),
    Table(Vec<PathBuf>),
    /// The lines of a database as a table.
    DatabaseTable(Vec<PathBuf>),
    Plot(Vec<PathBuf>),
    /// For W6, which starts this program again: serve a store, do nothing, and say what that took.
    Idle {
        url: String,
        time: Duration,
    },
}

pub(crate) struct Arguments {
    pub(crate) size: Size,
    pub(crate) only: Vec<Workload>,
    pub(crate) folder: PathBuf,
    /// The URL of the database to run workloads in, instead of files.
    pub(crate) database: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    W1,
    W2,
    W3,
    W4,
    W5,
    W6,
}

impl Workload {
    pub(crate) fn name(self) -> &'static str {
        ALL.iter().find(|(_, workload)| *workload == self).map_or("", |(name, _)| name)
    }
}

const ALL: [(&str, Workload); 6] = [
    ("w1", Workload::W1),
    ("w2", Workload::W2),
    ("w3", Workload::W3),
    ("w4", Workload::W4),
    ("w5", Workload::W5),
    ("w6", Workload::W6),
];

impl Task {
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let arguments: Vec<String> = arguments.collect();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Ok(match &words[..] {
            ["help" | "--help" | "-h", ..] => Self::Help,
            ["company", options @ ..] => Self::Company(Arguments::parse(options)?),
            ["growth", options @ ..] => Self::Growth(Arguments::parse(options)?),
            ["retention", options @ ..] => Self::Retention(Arguments::parse(options)?),
            ["table", "--database", files @ ..] => Self::DatabaseTable(files.iter().map(PathBuf::from).collect()),
            ["table", files @ ..] => Self::Table(files.iter().map(PathBuf::from).collect()),
            ["plot", files @ ..] => Self::Plot(files.iter().map(PathBuf::from).collect()),
            ["idle", url, millis] => {
                let millis = millis.parse().with_context(|| format!("{millis:?} is no number of milliseconds"))?;
                Self::Idle { url: (*url).to_owned(), time: Duration::from_millis(millis) }
            }
            options => Self::Run(Arguments::parse(options)?),
        })
    }
}

impl Arguments {
    pub(crate) fn is_quick(&self) -> bool {
        self.size == Size::QUICK
    }

    /// A folder of its own, on the disk that was asked for, and gone afterwards.
    pub(crate) fn fresh_folder(&self) -> Result<tempfile::TempDir> {
        std::fs::create_dir_all(&self.folder)?;
        Ok(tempfile::tempdir_in(&self.folder)?)
    }

    fn parse(mut words: &[&str]) -> Result<Self> {
        let only = ALL.iter().map(|(_, workload)| *workload).collect();
        let mut arguments = Self { size: Size::FULL, only, folder: PathBuf::from("target/bench"), database: None };
        loop {
            words = match words {
                [] => return Ok(arguments),
                ["--quick", rest @ ..] => {
                    arguments.size = Size::QUICK;
                    rest
                }
                ["--only", names, rest @ ..] => {
                    arguments.only = names.split(',').map(workload).collect::<Result<_>>()?;
                    rest
                }
                ["--dir", folder, rest @ ..] => {
                    arguments.folder = PathBuf::from(folder);
                    rest
                }
                ["--url", url, rest @ ..] => {
                    arguments.database = Some((*url).to_owned());
                    rest
                }
                [other, ..] => bail!("`{other}` says nothing\n\n{HELP}"),
            }
        }
    }
}

fn workload(name: &str) -> Result<Workload> {
    let known = ALL.iter().find(|(known, _)| *known == name);
    known.map(|(_, workload)| *workload).with_context(|| format!("`{name}` is no workload\n\n{HELP}"))
}
