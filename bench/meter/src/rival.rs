//! A rival, driven through the workloads that it shares with Dacapo.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};

use crate::{Long, Rounds, Shape, Size, System, Turnaround, start_sleepers};

/// Rivals are given a tenth of Dacapo's sleepers: ten thousand.
const FEWER: u32 = 10;

/// A rival on a file.
pub trait Rival: System + Sized {
    /// Opens a file that is not there yet, with settings as durable and as fast as the rival permits.
    fn open(file: &Path) -> impl Future<Output = Result<Self>> + Send;

    /// Ends serving.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// What the command line asks of a rival: `[--quick] [--only w1,…] [--dir FOLDER]`.
pub struct RivalArguments {
    size: Size,
    only: Vec<String>,
    folder: PathBuf,
}

impl RivalArguments {
    /// Reads them.
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Self> {
        let words: Vec<String> = words.collect();
        let mut words: Vec<&str> = words.iter().rev().map(String::as_str).collect();
        let only = ["w1", "w2", "w3", "w4", "w6"].map(str::to_owned).to_vec();
        let mut arguments = Self { size: Size::FULL, only, folder: PathBuf::from("target/bench") };
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
                (other, _) => bail!("`{other}` says nothing"),
            }
        }
        Ok(arguments)
    }
}

/// Runs the workloads, each on a new file, and prints their lines.
pub async fn measure<R: Rival>(RivalArguments { size, only, folder }: &RivalArguments) -> Result<()> {
    for workload in only {
        let folder = folder.join(format!("rival-{}-{workload}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let rival = Arc::new(R::open(&folder.join("rival.db")).await?);
        let measured = one(rival.clone(), workload, size).await;
        rival.close().await;
        std::fs::remove_dir_all(&folder)?;
        measured?;
    }
    Ok(())
}

/// A rival's log is written over from its thousandth page on, Dacapo's from its four-thousandth, and its chains take longer.
const LESS: u32 = 10;

async fn one<R: Rival>(rival: Arc<R>, workload: &str, size: &Size) -> Result<()> {
    let line = match workload {
        "w1" => rounds(rival, "w1", Shape::Chain(size.chains.1), size.chains.0, size).await?.line(),
        "w2" => rounds(rival, "w2", Shape::Fan(size.fans.1), size.fans.0, size).await?.line(),
        "w3" => {
            Rounds::warm_up(rival.clone(), size.warm_up / LESS).await?;
            let long = Long { steps: size.steps.0, every: usize::MAX };
            long.run(&*rival, "w3", Box::new(|| ())).await?.line(rival.name())
        }
        "w4" => {
            Rounds::warm_up(rival.clone(), size.warm_up / LESS).await?;
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
