//! What a worker runs, whatever the backend: registered workflows and activities, threads for turns, tasks for attempts.
//!
//! Turns are played on bare threads ([`TurnPool`]), outside any async runtime, so that a foreign timer or spawn in
//! workflow code panics at the call instead of deciding something. Attempts of activities are tasks of the program's
//! own runtime ([`Attempts`]), where they may do as they like.

mod activity;
mod attempt;
mod attempts;
mod ctx;
mod pool;
mod registry;
mod scope;
mod settings;
mod termination;

pub use activity::{Activity, ActivityBody, ActivityFuture};
pub use attempt::{Attempt, AttemptCode, Grip};
pub use attempts::Attempts;
pub use ctx::{ActivityCtx, ActivityInfo, Heartbeats};
pub use pool::TurnPool;
pub use registry::{Registry, RegistryError};
pub use settings::{
    AppSettings, AppValues, Effective, EffectiveRow, Origin, QueueSettings, QueueValues, Scope, Setting, SettingError,
    SettingErrors, Unit, ZombieSettings, all_settings, queue_variable,
};
pub use termination::{Act, Termination, TerminationState};
