//! The rows of the tables: their columns, how they are read, and their checksums.

pub(crate) mod attribute;
pub(crate) mod deleted_run;
pub(crate) mod message;
pub(crate) mod run;
pub(crate) mod run_sums;
pub(crate) mod task;
pub(crate) mod timer;
pub(crate) mod turn;
