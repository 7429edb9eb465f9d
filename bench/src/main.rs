//! Dacapo under six workloads, beside what the machine gives at best. Each measurement prints one line of JSON.
//!
//! Everything a figure is compared with is measured in the same run and in turns with it: figures of a shared machine move from
//! minute to minute, ratios do not.

mod arguments;
mod bare_commit;
mod company;
mod concurrent;
mod database;
mod embedded;
mod growth;
mod idle;
mod kept;
mod latency;
mod long;
mod plot;
mod programs;
mod prototype;
mod replay;
mod retention;
mod sleepers;
mod table;

use anyhow::Result;

use arguments::{Arguments, Task, Workload};

#[tokio::main]
async fn main() -> Result<()> {
    match Task::parse(std::env::args().skip(1))? {
        Task::Help => println!("{}", arguments::HELP),
        Task::Table(files) => print!("{}", table::of_files(&files)?),
        Task::Plot(files) => print!("{}", plot::of_files(&files)?),
        Task::Idle { url, time } => idle::watch(&url, time).await?,
        Task::DatabaseTable(files) => print!("{}", table::of_files_on_a_database(&files)?),
        Task::Run(arguments) => run(&arguments).await?,
        Task::Company(arguments) => {
            let party = if arguments.is_quick() { company::Party::QUICK } else { company::Party::FULL };
            company::run(party, arguments.fresh_folder()?.path()).await?;
        }
        Task::Retention(arguments) => {
            let load = if arguments.is_quick() { retention::Load::QUICK } else { retention::Load::FULL };
            retention::run(load, arguments.fresh_folder()?.path()).await?;
        }
        Task::Growth(arguments) => growth::run(arguments.is_quick(), arguments.fresh_folder()?.path()).await?,
    }
    Ok(())
}

async fn run(arguments: &Arguments) -> Result<()> {
    let size = &arguments.size;
    for workload in &arguments.only {
        if let Some(database) = &arguments.database {
            database::run(*workload, size, database).await?;
            continue;
        }
        let folder = arguments.fresh_folder()?;
        match workload {
            Workload::W1 => concurrent::chains(size, folder.path()).await?,
            Workload::W2 => concurrent::fans(size, folder.path()).await?,
            Workload::W3 => long::run(size, folder.path()).await?,
            Workload::W4 => latency::run(size, folder.path()).await?,
            Workload::W5 => replay::run(size, &embedded::file_url(&folder.path().join("dacapo.db"))).await?,
            Workload::W6 => sleepers::run(size, folder.path()).await?,
        }
    }
    Ok(())
}
