//! What an attempt tells of its progress, typed.

use dacapo_core::Failure;
use dacapo_worker::ActivityCtx;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::json::{decode, encode};

/// Typed heartbeats, for [`ActivityCtx`].
pub trait Progress {
    /// Reports that the attempt is alive, and how far it is. The last report is handed to the next attempt. Fails with
    /// `Cancelled` when the attempt is no longer wanted, so that a loop of `ctx.heartbeat(&done)?` ends when it should.
    fn heartbeat<T: Serialize + ?Sized>(&self, details: &T) -> Result<(), Failure>;

    /// What the last attempt reported, if it reported anything.
    fn details<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure>;
}

impl Progress for ActivityCtx {
    fn heartbeat<T: Serialize + ?Sized>(&self, details: &T) -> Result<(), Failure> {
        Ok(self.heartbeat_payload(encode(details)?)?)
    }

    fn details<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        self.info().details.as_ref().map(decode).transpose()
    }
}
