//! The command `dacapo`: looks at runs and changes them. `docs/command.md` has all of it.

mod arguments;
mod backend;
mod demo;
mod failure;
mod output;
mod text;
mod timeline;
mod verbs;

use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::Arguments;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match verbs::run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("dacapo: {failure}");
            ExitCode::from(failure.code())
        }
    }
}
