//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::demo::Demo;

/// Looks at durable workflows and changes them.
#[derive(Debug, Parser)]
#[command(name = "dacapo", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// Where the runs are: sqlite:FILE, postgres://…, temporal://…, unix:SOCKET, or http://TOKEN@HOST:PORT
    #[arg(long, short, global = true, env = "DACAPO_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the call failed
  2  the command line is wrong
  3  there is no such run, activity, promise or update
  4  the state of the run does not allow it
  5  the backend cannot be reached, or is busy
  6  the backend cannot do it, or this caller may not";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a small shop on a file: kill it, run it again, it goes on
    Demo(Demo),
    /// List runs, newest first
    List(List),
    /// Count runs, each group up to 10,000
    Count(Count),
    /// Show a run: its state, and a timeline of what it did
    Show(Run),
    /// Print what happened in a run
    History(History),
    /// Print what each part of a run waits for, and where in the code
    Stack(Run),
    /// Group stuck runs by cause
    Stuck,
    /// Start a run
    Start(Start),
    /// Send a signal to a run
    Signal(Message),
    /// Ask a run a question
    Query(Message),
    /// Send an update to a run, and wait until it is completed
    Update(Update),
    /// Wait for the result of a run
    Result(Run),
    /// Resolve a promise of a run
    Resolve(Resolve),
    /// Ask a run to cancel itself
    Cancel(End),
    /// End a run at once
    Terminate(End),
    /// Start a run again from a turn, as a new run
    Reset(Reset),
    /// Release a quarantined run
    Release(Run),
    /// Delete a closed run and its history
    Delete(Run),
    /// Do something to all runs that a search finds
    Batch(Batch),
    /// List the processes that serve
    Nodes,
    /// Copy everything into a new file, while it is served
    Backup {
        /// The file, on the machine of the backend
        file: PathBuf,
    },
    /// Check all stored data
    Verify,
    /// Write the histories of closed runs to a file
    Export {
        /// The file
        file: PathBuf,
        /// Which runs, as in `dacapo list`
        #[arg(default_value = "")]
        search: String,
    },
    /// Print a script that completes commands in a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page
    Man,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Which runs, such as: WorkflowType = 'checkout' AND ExecutionStatus = 'Running'
    #[arg(default_value = "")]
    pub(crate) search: String,
    /// How many runs
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Where the page before ended, as it said
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Count {
    /// Which runs, as in `dacapo list`
    #[arg(default_value = "")]
    pub(crate) search: String,
    /// One count for each of these
    #[arg(long)]
    pub(crate) by: Option<By>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum By {
    Status,
    Workflow,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Run {
    /// The workflow id
    pub(crate) id: String,
    /// One run of several of the same workflow id
    #[arg(long, value_name = "ID")]
    pub(crate) run_id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct History {
    #[command(flatten)]
    pub(crate) run: Run,
    /// Print the first difference to the history of this workflow id instead
    #[arg(long, value_name = "ID")]
    pub(crate) diff: Option<String>,
    /// Leave payloads and messages out
    #[arg(long)]
    pub(crate) redact: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Start {
    /// The workflow's type
    pub(crate) workflow: String,
    /// The arguments, each as JSON; what is no JSON is a text
    pub(crate) input: Vec<String>,
    /// The workflow id; without one, a random one
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// The task queue
    #[arg(long)]
    pub(crate) queue: Option<String>,
    /// A search attribute; may be given several times
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) attribute: Vec<(String, String)>,
    /// The key of this request: a second start with the same key is the same start
    #[arg(long, value_name = "KEY")]
    pub(crate) request_id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Message {
    #[command(flatten)]
    pub(crate) run: Run,
    /// The name of the signal or query
    pub(crate) name: String,
    /// The arguments, each as JSON; what is no JSON is a text
    pub(crate) input: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    #[command(flatten)]
    pub(crate) message: Message,
    /// The update's id: a second update with the same id is the same update
    #[arg(long, value_name = "KEY")]
    pub(crate) request_id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Resolve {
    #[command(flatten)]
    pub(crate) run: Run,
    /// The promise's name or id
    pub(crate) promise: String,
    /// The value as JSON; what is no JSON is a text
    pub(crate) value: String,
}

#[derive(Debug, Args)]
pub(crate) struct End {
    #[command(flatten)]
    pub(crate) run: Run,
    /// The reason, for the history and for those who ask
    #[arg(long, short, default_value = "")]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct Reset {
    #[command(flatten)]
    pub(crate) run: Run,
    /// The first turn that is played anew; `dacapo history` shows the turns
    #[arg(long)]
    pub(crate) turn: u64,
    /// The reason
    #[arg(long, short, default_value = "")]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct Batch {
    /// The change to make to each run
    pub(crate) verb: BatchVerb,
    /// Which runs, as in `dacapo list`
    pub(crate) search: String,
    /// Do it; without this, say what would be done
    #[arg(long)]
    pub(crate) yes: bool,
    /// The reason, for `cancel` and `terminate`
    #[arg(long, short, default_value = "")]
    pub(crate) reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BatchVerb {
    Cancel,
    Terminate,
    Release,
    Delete,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}
