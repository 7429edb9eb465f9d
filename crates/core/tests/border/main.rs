//! The border to Temporal, tried before there is a bridge: every job and command of its protocol has a place here, and
//! the program on the front page plays.

#![allow(clippy::disallowed_methods, reason = "the table that is checked is a file")]

mod checkout;
mod table;
