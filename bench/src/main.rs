//! Dacapo under six workloads, beside what the machine gives at best. Each measurement prints one line of JSON.
//!
//! Everything a figure is compared with is measured in the same run and in turns with it: figures of a shared machine move from
//! minute to minute, ratios do not.

mod arguments;
mod bare_commit;
mod concurrent;
mod embedded;
mod idle;
mod kept;
mod latency;
mod long;
mod programs;
mod prototype;
mod replay;
mod sleepers;
mod table;

use anyhow::Result;

use arguments::{Arguments, Task, Workload};

#[tokio::main]
async fn main() -> Result<()> {
    match Task::parse(std::env::args().skip(1))? {
        Task::Help => println!("{}", arguments::HELP),
        Task::Table(files) => print!("{}", table::of_files(&files)?),
        Task::Idle { file, time } => idle::watch(&file, time).await?,
        Task::Run(arguments) => run(&arguments).await?,
    }
    Ok(())
}

async fn run(Arguments { size, only, folder }: &Arguments) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for workload in only {
        // A folder of its own, on the disk that was asked for, and gone afterwards.
        let folder = tempfile::tempdir_in(folder)?;
        match workload {
            Workload::W1 => concurrent::chains(size, folder.path()).await?,
            Workload::W2 => concurrent::fans(size, folder.path()).await?,
            Workload::W3 => long::run(size, folder.path()).await?,
            Workload::W4 => latency::run(size, folder.path()).await?,
            Workload::W5 => replay::run(size, folder.path()).await?,
            Workload::W6 => sleepers::run(size, folder.path()).await?,
        }
    }
    Ok(())
}
