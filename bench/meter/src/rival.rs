//! A rival, driven through the workloads that it shares with Dacapo.

use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};

use crate::{Long, Rounds, Shape, Size, System, Turnaround, start_sleepers};

/// Rivals are given a tenth of Dacapo's sleepers: ten thousand.
const FEWER: u32 = 10;

/// Where a rival keeps what it knows. It is not there yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file.
    File(PathBuf),
    /// A schema of a PostgreSQL database.
    Schema {
        /// The URL of the database.
        database: String,
        /// The name of the schema.
        schema: String,
    },
}

/// A rival on a file or in a database.
pub trait Rival: System + Sized {
    /// Opens a place, with settings as durable and as fast as the rival permits.
    fn open(place: &Place) -> impl Future<Output = Result<Self>> + Send;

    /// Ends serving.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// What the command line asks of a rival: `[--quick] [--only w1,…] [--dir FOLDER | --url DATABASE]`.
pub struct RivalArguments {
    size: Size,
    only: Vec<String>,
    folder: PathBuf,
    /// Instead of files in the folder.
    database: Option<String>,
}

impl RivalArguments {
    /// Reads them.
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Self> {
        let words: Vec<String> = words.collect();
        let mut words: Vec<&str> = words.iter().rev().map(String::as_str).collect();
        let only = ["w1", "w2", "w3", "w4", "w6"].map(str::to_owned).to_vec();
        let mut arguments = Self { size: Size::FULL, only, folder: PathBuf::from("target/bench"), database: None };
        while let Some(word) = words.pop() {
            match (word, words.last()) {
                ("--quick", _) => arguments.size = Size::QUICK,
                ("--only", Some(names)) => {
                    arguments.only = names.split(',').map(str::to_owned).collect();
                    words.pop();
                }
                ("--dir", Some(folder)) => {
                    arguments.folder = PathBuf::from(folder);
                    words.pop();
                }
                ("--url", Some(url)) => {
                    arguments.database = Some((*url).to_owned());
                    words.pop();
                }
                (other, _) => bail!("`{other}` says nothing"),
            }
        }
        Ok(arguments)
    }

    /// Returns whether the rival is measured in a database.
    pub fn is_on_database(&self) -> bool {
        self.database.is_some()
    }

    /// The folder of a workload's file, and the place.
    fn place(&self, workload: &str) -> (PathBuf, Place) {
        let folder = self.folder.join(format!("rival-{}-{workload}", std::process::id()));
        let place = match &self.database {
            Some(database) => Place::Schema { database: database.clone(), schema: new_schema(workload) },
            None => Place::File(folder.join("rival.db")),
        };
        (folder, place)
    }
}

/// Returns the name of a schema that no other measurement uses.
pub fn new_schema(workload: &str) -> String {
    // The standard library seeds these keys randomly.
    format!("bench_{workload}_{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// Runs the workloads, each in a new place, and prints their lines.
pub async fn measure<R: Rival>(arguments: &RivalArguments) -> Result<()> {
    for workload in &arguments.only {
        let (folder, place) = arguments.place(workload);
        std::fs::create_dir_all(&folder)?;
        let rival = Arc::new(R::open(&place).await?);
        let measured = one(rival.clone(), workload, &arguments.size).await;
        rival.close().await;
        std::fs::remove_dir_all(&folder)?;
        measured?;
    }
    Ok(())
}

async fn one<R: Rival>(rival: Arc<R>, workload: &str, size: &Size) -> Result<()> {
    let line = match workload {
        "w1" => rounds(rival, "w1", Shape::Chain(size.chains.1), size.chains.0, size).await?.line(),
        "w2" => rounds(rival, "w2", Shape::Fan(size.fans.1), size.fans.0, size).await?.line(),
        "w3" => {
            Rounds::warm_up(rival.clone(), size.rival_warm_up()).await?;
            let long = Long { steps: size.steps.0, every: usize::MAX };
            long.run(&*rival, "w3", Box::new(|| ())).await?.line(rival.name())
        }
        "w4" => {
            Rounds::warm_up(rival.clone(), size.rival_warm_up()).await?;
            let mut turnaround = Turnaround::default();
            for _ in 0..size.turnarounds {
                turnaround.run(&*rival).await?;
            }
            turnaround.line(rival.name())
        }
        "w6" => start_sleepers(rival, size.sleepers / FEWER).await?,
        // It asks for Dacapo's own way of eviction.
        "w5" => return Ok(()),
        other => bail!("`{other}` is no workload"),
    };
    line.print();
    Ok(())
}

async fn rounds<R: Rival>(
    rival: Arc<R>,
    workload: &'static str,
    shape: Shape,
    wide: u32,
    size: &Size,
) -> Result<Rounds<R>> {
    let mut rounds = Rounds::new(rival, workload, shape, wide);
    rounds.play_for(size.time).await?;
    Ok(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_a_new_file_or_a_new_schema_of_the_database() {
        let parse = |words: &[&str]| RivalArguments::parse(words.iter().map(|word| (*word).to_owned())).unwrap();
        let (folder, place) = parse(&["--dir", "here"]).place("w1");
        assert!(folder.starts_with("here"));
        assert_eq!(place, Place::File(folder.join("rival.db")));
        let in_database = parse(&["--url", "postgres://host/db"]);
        let Place::Schema { database, schema } = in_database.place("w1").1 else { panic!("a schema was asked for") };
        assert_eq!(database, "postgres://host/db");
        assert!(schema.starts_with("bench_w1_"), "{schema}");
        assert_ne!(in_database.place("w1").1, Place::Schema { database, schema });
    }
}
