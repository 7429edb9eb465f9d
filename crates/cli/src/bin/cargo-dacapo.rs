//! `cargo dacapo check`: runs the deploy gates of a program.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

/// The words that cargo passes on.
#[derive(Debug, Parser)]
#[command(name = "cargo", bin_name = "cargo")]
enum Cargo {
    /// Durable workflows
    #[command(version, subcommand)]
    Dacapo(Verb),
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Replay all open runs with the code at hand: run every test that `dacapo::deploy_gate!` defines
    Check {
        /// Where the runs are: sqlite:FILE, postgres://…, temporal://…
        #[arg(long, short, env = "DACAPO_URL", hide_env_values = true)]
        url: String,
        /// A folder for the reports as text, JSON and JUnit
        #[arg(long, value_name = "FOLDER")]
        reports: Option<PathBuf>,
        /// More words for `cargo test`, such as -p orders
        #[arg(last = true)]
        words: Vec<String>,
    },
}

fn main() -> ExitCode {
    let Cargo::Dacapo(Verb::Check { url, reports, words }) = Cargo::parse();
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg("test").args(words).args(["dacapo_deploy_gate", "--", "--ignored", "--nocapture"]);
    command.env("DACAPO_CHECK_URL", absolute(url));
    if let Some(folder) = reports {
        command.env("DACAPO_CHECK_REPORTS", std::path::absolute(&folder).unwrap_or(folder));
    }
    match command.status() {
        Ok(status) => ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)),
        Err(error) => {
            eprintln!("cargo dacapo: cargo cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Tests run in the folder of their package, so a file is named by its whole path.
fn absolute(url: String) -> String {
    let Some(file) = url.strip_prefix("sqlite:") else { return url };
    let (file, query) = file.split_once('?').map_or((file, String::new()), |(file, query)| (file, format!("?{query}")));
    let path = std::path::absolute(file.strip_prefix("//").unwrap_or(file));
    path.map_or_else(|_| url.clone(), |path| format!("sqlite:{}{query}", path.display()))
}
