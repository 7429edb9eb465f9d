//! From what came for a run to a committed turn.

pub(crate) mod choices;
pub(crate) mod close;
pub(crate) mod commit;
pub(crate) mod drive;
pub(crate) mod load;
pub(crate) mod plan;
pub(crate) mod player;
pub(crate) mod stuck;
pub(crate) mod update_outcome;
pub(crate) mod validate;
