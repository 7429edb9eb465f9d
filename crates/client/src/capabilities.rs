//! What a backend can do.

use std::collections::BTreeSet;
use std::fmt;

use dacapo_core::{Pins, PolicySpec};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A feature that not every backend has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Feature {
    /// Calls that change something. A client that only reads lacks it.
    Writing,
    /// Calls that need the code of the workflow: queries, and waiting for updates.
    Queries,
    /// Promises that are resolved by name.
    Promises,
    /// Closures of a workflow whose results are recorded.
    SideEffects,
    /// Inspection of what each unit of a run waits for.
    Inspection,
    /// Lists, counts and groups of stuck runs. Descriptions say on every backend why a run is stuck.
    StuckRuns,
    /// Waits for a result that also end when the run is stuck.
    ResultOrStuck,
    /// Quarantine of code that kills its process, and its release.
    Quarantine,
    /// Deletion of single runs.
    Deletion,
    /// Verification of all stored data.
    Verification,
    /// Backups into a file.
    Backup,
    /// Export and import of histories.
    Archive,
    /// A list of the processes that serve.
    Nodes,
    /// Runs that are pinned to a scheduler policy other than the deterministic one.
    Policies,
    /// Operations of other services.
    Nexus,
    /// Child workflows that start by a cron line.
    Cron,
    /// A feature that a newer backend has and this build does not know.
    #[serde(other)]
    Unknown,
}

impl Feature {
    /// All features that this build knows.
    pub const ALL: [Self; 16] = [
        Self::Writing,
        Self::Queries,
        Self::Promises,
        Self::SideEffects,
        Self::Inspection,
        Self::StuckRuns,
        Self::ResultOrStuck,
        Self::Quarantine,
        Self::Deletion,
        Self::Verification,
        Self::Backup,
        Self::Archive,
        Self::Nodes,
        Self::Policies,
        Self::Nexus,
        Self::Cron,
    ];

    /// Returns what to do where a backend lacks the feature.
    pub(crate) fn instead(self) -> &'static str {
        match self {
            Self::Writing => {
                "start the program that serves the runs, and make this call in it, or over the socket of its file, `unix:FILE-control`"
            }
            Self::Queries | Self::Inspection | Self::Nodes => {
                "start the program that serves the runs, and make this call in it, or over the socket of its file, `unix:FILE-control`; or use a backend that has it"
            }
            Self::StuckRuns => "describe runs one by one, or use a backend that has it",
            Self::ResultOrStuck => "wait for the result alone, or use a backend that has it",
            Self::Backup => "export the histories, or use a backend that has it",
            Self::Policies => "pin the run to the deterministic one",
            Self::Nexus => "call an activity, or use a backend that has it",
            Self::Cron => "sleep in a loop and continue as new, or start runs from your own scheduler",
            _ => "use a backend that has it",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Writing => "writing",
            Self::Queries => "queries",
            Self::Promises => "promises",
            Self::SideEffects => "side effects",
            Self::Inspection => "inspection",
            Self::StuckRuns => "lists of stuck runs",
            Self::ResultOrStuck => "waits that end when a run is stuck",
            Self::Quarantine => "quarantine",
            Self::Deletion => "deletion",
            Self::Verification => "verification",
            Self::Backup => "backup",
            Self::Archive => "export and import",
            Self::Nodes => "a list of the processes that serve",
            Self::Policies => "scheduler policies other than the deterministic one",
            Self::Nexus => "Nexus operations",
            Self::Cron => "cron lines",
            Self::Unknown => "an unknown feature",
        })
    }
}

/// The name of a backend and the features it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Capabilities {
    /// The backend, as errors name it: `sqlite`, `memory`, `temporal`.
    pub backend: String,
    /// The features it has.
    pub features: BTreeSet<Feature>,
}

impl Capabilities {
    /// Creates the capabilities of a backend with these features.
    pub fn new(backend: impl Into<String>, features: impl IntoIterator<Item = Feature>) -> Self {
        Self { backend: backend.into(), features: features.into_iter().collect() }
    }

    /// Returns whether the backend has this feature.
    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// Returns an error that names the feature and the backend if it lacks the feature.
    pub fn require(&self, feature: Feature) -> Result<()> {
        match self.has(feature) {
            true => Ok(()),
            false => Err(self.lacks(feature)),
        }
    }

    /// Returns an error if the backend lacks a feature that a run with these pins needs.
    pub fn check_pins(&self, pins: &Pins) -> Result<()> {
        if pins.policy == PolicySpec::Deterministic { Ok(()) } else { self.require(Feature::Policies) }
    }

    /// Returns the error for a call that needs a feature which this backend lacks.
    pub fn lacks(&self, feature: Feature) -> Error {
        Error::Unsupported { feature, backend: self.backend.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_feature_is_refused_with_its_name_and_the_backend() {
        let reader =
            Capabilities::new("sqlite, read-only", Feature::ALL.into_iter().filter(|f| *f != Feature::Writing));
        assert_eq!(reader.require(Feature::Backup), Ok(()));
        let refused = reader.require(Feature::Writing).unwrap_err().to_string();
        assert_eq!(
            refused,
            "this backend (sqlite, read-only) does not support writing: start the program that serves the runs, and make \
             this call in it, or over the socket of its file, `unix:FILE-control`"
        );
    }
}
