//! The worker, for any backend: registered workflows and activities, threads for turns, tasks for attempts.
//!
//! [`Worker::play`] plays an activation that a backend brings. It is the one driver of turns: deadlock watch, crash
//! note, span, silence on replay, metrics, and the hand-over from a thread that does not return. Turns are played on
//! plain threads ([`TurnPool`]), outside any async runtime, so that a foreign timer or spawn in workflow code panics at
//! the call and decides nothing. Attempts of activities are tasks of the program's own runtime ([`Attempts`]), where
//! they may do as they like; the tasks that they start there end with them.
//!
//! [`Zombies`] handles code that was asked to stop and runs on, by the deadlines of [`Termination`]. All settings are
//! rows of one table ([`AppSettings`], `docs/settings.md`). None of these has a clock, a thread or an environment of
//! its own: time and variables are arguments, so that they hold for every backend and tests are exact.

mod activity;
mod attempt;
mod attempt_parts;
mod attempts;
mod ctx;
mod deadlock;
mod drain;
mod driver;
mod interrupt;
mod meters;
mod pool;
mod registry;
mod retry;
mod run_name;
mod settings;
mod silence;
mod termination;
mod token;
mod worker;
mod zombies;

pub use activity::{Activity, ActivityCode, ActivityFuture};
pub use attempt::{Attempt, AttemptCode, AttemptHandle};
pub use attempts::Attempts;
pub use ctx::{ActivityCtx, ActivityInfo, Heartbeats};
pub use deadlock::{Deadlock, DeadlockWatch, GiveUp, WatchedTurn};
pub use drain::{Drain, DrainStep};
pub use driver::{HandOver, Play, RunToPlay, StuckPlay, TurnHost};
pub use interrupt::{Interrupt, StuckTurn};
pub use meters::{AttemptMeters, Level, METERS_NUMBER, Meter, MeterKind, Meters, all_meters, describe_meters, meter};
pub use pool::{TurnPool, TurnThread};
pub use registry::{Registry, RegistryError};
pub use retry::pause_after;
pub use run_name::RunName;
pub use settings::{
    AppSettings, AppValues, Effective, EffectiveRow, QueueSettings, QueueValues, SETTINGS_NUMBER, Setting,
    SettingAlias, SettingError, SettingErrors, SettingOrigin, SettingScope, SettingUnit, ZombieSettings, all_settings,
    queue_variable, setting_aliases,
};
pub use silence::{replay_silencer, silence};
pub use termination::{Act, Termination, TerminationState};
pub use token::{CompletionToken, TokenError};
pub use worker::Worker;
pub use zombies::{
    Effects, Entity, EntityKind, Health, ShutdownWait, StoppingCode, TerminationId, ZombieLimit, Zombies,
};
