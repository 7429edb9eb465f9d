//! The life of an engine, from opening to shutdown.

pub(crate) mod count_open;
pub(crate) mod halt;
pub(crate) mod halted;
pub(crate) mod recover;
pub(crate) mod retention;
pub(crate) mod shutdown;
pub(crate) mod shutdown_state;
pub(crate) mod sweeping;
pub(crate) mod zombie_alarms;
pub(crate) mod zombies;
