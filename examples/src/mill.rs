//! Work of all kinds.
