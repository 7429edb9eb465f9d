//! Where the runs are: what the URL names, or the program that serves its file.

use std::path::Path;
use std::sync::Arc;

use dacapo::{Connection, Dacapo};
use dacapo_client::{Client, Error, Feature, RunRef};
use dacapo_control::{RemoteClient, Target, socket_of};

use crate::arguments::Run;
use crate::failure::{Failure, Result};

/// Connects to a backend. A file that a program serves is reached through that program, so that it can also be changed.
pub(crate) async fn connect(url: Option<&str>) -> Result<Connection> {
    let Some(url) = url else {
        let text = "name the place of the runs: `--url sqlite:orders.db`, or the variable DACAPO_URL";
        return Err(Failure::Usage(text.to_owned()));
    };
    if let Some(file) = url.strip_prefix("sqlite:") {
        let file = file.split('?').next().unwrap_or(file);
        let file = file.strip_prefix("//").unwrap_or(file);
        if let Some(client) = served(Path::new(file)).await? {
            return Ok(Connection::over(client));
        }
    }
    Ok(Dacapo::connect(url).await?)
}

/// Returns the program that serves a file, if there is one.
async fn served(file: &Path) -> Result<Option<Arc<dyn Client>>> {
    let Ok(socket) = socket_of(file) else { return Ok(None) };
    match RemoteClient::connect(Target::Unix(socket)).await {
        Ok(client) => Ok(Some(client)),
        // Nothing listens there: the file is looked at as it is.
        Err(Error::Unavailable(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Names the run that the command line names.
pub(crate) fn run_of(run: &Run) -> RunRef {
    match &run.run_id {
        Some(run_id) => RunRef::exact(run.id.clone(), run_id.clone()),
        None => RunRef::latest(run.id.clone()),
    }
}

/// Adds to the error of a change what to do where a file or a database is only read.
pub(crate) fn explained(error: Error) -> Failure {
    match error {
        Error::ReadOnly(_) | Error::Unsupported { feature: Feature::Writing, .. } => Failure::Call(Error::ReadOnly(
            format!("{error}. This command finds the socket by itself, if the program has the feature `control`"),
        )),
        other => Failure::Call(other),
    }
}
