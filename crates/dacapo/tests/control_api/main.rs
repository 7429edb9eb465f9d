//! The control API over a served store, called by its own client and by requests as others send them.
#![cfg(feature = "control")]

mod guard;
mod paths;
mod remote;
mod served;
mod socket;
