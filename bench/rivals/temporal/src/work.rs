//! The input of both workers' workflows.

use serde::{Deserialize, Serialize};

/// One payload, so that both SDKs read what either writes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Work {
    /// The number of activities.
    pub activities: u32,
    /// The input of each activity, and the result of the workflow.
    pub payload: String,
}
