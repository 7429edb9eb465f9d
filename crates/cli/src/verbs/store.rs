//! What belongs to a store as a whole.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use dacapo::{Connection, Filter};
use dacapo_client::Client;
use serde_json::json;

use crate::backend::explained;
use crate::failure::{Failure, Result};
use crate::output::Output;

pub(super) async fn back_up(client: &dyn Client, file: PathBuf, output: Output) -> Result<()> {
    // The backend may have another folder.
    let file = std::path::absolute(&file)?;
    client.back_up(file.clone()).await.map_err(explained)?;
    output.print(&json!({ "file": file }), || format!("everything is copied to {}", file.display()))
}

pub(super) async fn verify(client: &dyn Client, output: Output) -> Result<()> {
    let shown = std::io::stderr().is_terminal();
    let progress = move |runs: u64| {
        if shown {
            eprint!("\r{runs} runs checked");
        }
    };
    let problems = client.verify(Box::new(progress)).await.map_err(explained)?;
    if shown {
        eprintln!();
    }
    output.print(&problems, || match problems.is_empty() {
        true => "everything that is stored is sound".to_owned(),
        false => problems.iter().map(|problem| format!("{problem}\n")).collect(),
    })?;
    match problems.len() {
        0 => Ok(()),
        1 => Err(Failure::Other("1 problem was found".to_owned())),
        count => Err(Failure::Other(format!("{count} problems were found"))),
    }
}

pub(super) async fn export(connection: &Connection, file: PathBuf, search: &str, output: Output) -> Result<()> {
    let mut filter = Filter::all();
    if !search.trim().is_empty() {
        filter = filter.search(search)?;
    }
    let runs = connection.runs().export_to_file(&filter, &file).await?;
    output.print(&json!({ "runs": runs, "file": file }), || format!("{runs} runs are in {}", file.display()))
}
