//! The transcript of a replay: what our own records of the run would be.

use dacapo_core::{Name, Pins, Transcript, Turn, TurnDone};
use dacapo_sync::{Mutex, ranks};

/// Records the turns of one run. The build that recorded them is not known.
pub(crate) struct TranscriptRecorder(Mutex<Option<Transcript>>);

impl TranscriptRecorder {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(ranks::TEMPORAL_TRANSCRIPT, None))
    }

    pub(crate) fn begin(&self, workflow: &Name, pins: &Pins) {
        *self.0.lock() = Some(Transcript::new(workflow.clone(), pins.clone()));
    }

    pub(crate) fn record(&self, turn: &Turn, done: &TurnDone) {
        if let Some(transcript) = self.0.lock().as_mut() {
            transcript.record(turn, done, &Name::default());
        }
    }

    pub(crate) fn take(&self) -> Option<Transcript> {
        self.0.lock().take()
    }
}
