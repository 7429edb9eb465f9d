//! Code that kills its process: counted, played alone, delayed, and at last quarantined.

pub(crate) mod count;
pub(crate) mod hooks;
pub(crate) mod limits;
pub(crate) mod probation;
