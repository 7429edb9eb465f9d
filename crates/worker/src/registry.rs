//! The registry: the workflows and activities that this process can play, by name.

use std::collections::BTreeMap;
use std::fmt;

use dacapo_core::{Name, Workflow};
use thiserror::Error;

use crate::Activity;

/// All workflows and activities that a worker serves.
#[derive(Clone, Default)]
pub struct Registry {
    workflows: BTreeMap<Name, Workflow>,
    activities: BTreeMap<Name, Activity>,
}

/// An invalid registration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name is taken.
    #[error(
        "{kind} {name:?} is registered twice: every {kind} of a worker has a name of its own; rename one, for instance with `name = \"…\"`"
    )]
    Twice {
        /// Workflow or activity.
        kind: &'static str,
        /// The name.
        name: Name,
    },
    /// The name is empty.
    #[error("a {0} is registered without a name: give it one")]
    Nameless(&'static str),
}

impl Registry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a workflow.
    pub fn workflow(&mut self, workflow: Workflow) -> Result<(), RegistryError> {
        let name = workflow.name().clone();
        add(&mut self.workflows, "workflow", name, workflow)
    }

    /// Adds an activity.
    pub fn activity(&mut self, activity: Activity) -> Result<(), RegistryError> {
        let name = activity.name().clone();
        add(&mut self.activities, "activity", name, activity)
    }

    /// Returns the workflow of this name.
    pub fn find_workflow(&self, name: &str) -> Option<&Workflow> {
        self.workflows.get(name)
    }

    /// Returns the activity of this name.
    pub fn find_activity(&self, name: &str) -> Option<&Activity> {
        self.activities.get(name)
    }

    /// Returns the names of all workflows.
    pub fn workflows(&self) -> impl Iterator<Item = &Name> {
        self.workflows.keys()
    }

    /// Returns the names of all activities.
    pub fn activities(&self) -> impl Iterator<Item = &Name> {
        self.activities.keys()
    }
}

fn add<T>(map: &mut BTreeMap<Name, T>, kind: &'static str, name: Name, item: T) -> Result<(), RegistryError> {
    if name.is_empty() {
        return Err(RegistryError::Nameless(kind));
    }
    match map.insert(name.clone(), item) {
        None => Ok(()),
        Some(_) => Err(RegistryError::Twice { kind, name }),
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("workflows", &self.workflows.keys())
            .field("activities", &self.activities.keys())
            .finish()
    }
}
