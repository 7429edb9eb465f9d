//! Sending a signal.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use dacapo_client::{RunRef, SendSignal};
use dacapo_core::{Failure, Name, Payload};
use serde::Serialize;

use crate::client::link::Link;
use crate::client::{Error, IntoName, Result};

/// A signal to a run: set options, then await it. It is durable when it answers.
///
/// ```
/// # use dacapo::prelude::*;
/// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
/// const CANCEL: Signal<String> = Signal::new("cancel");
///
/// let call = run.signal(CANCEL, "too bright".into()).request_id("cancel-42").header("sent-by", "ada");
/// call.await?;
/// # Ok(()) }
/// ```
#[must_use = "a signal is not sent unless it is awaited"]
pub struct SignalCall {
    link: Link,
    run: RunRef,
    signal: SendSignal,
    /// Why the value could not be encoded.
    failure: Option<Failure>,
}

impl SignalCall {
    pub(crate) fn new(link: Link, run: RunRef, name: Name, input: std::result::Result<Payload, Failure>) -> Self {
        let (input, failure) = match input {
            Ok(input) => (vec![input], None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        Self { link, run, signal: SendSignal { name, input, ..SendSignal::default() }, failure }
    }

    /// Sets the program's key for this request: a second signal with the same key is the same signal, however often it is sent.
    pub fn request_id(mut self, request_id: impl IntoName) -> Self {
        self.signal.request_id = Some(request_id.into_name());
        self
    }

    /// Adds a header: a named value that travels beside the value. One that cannot be encoded fails the signal.
    pub fn header<T: Serialize + ?Sized>(mut self, name: impl IntoName, value: &T) -> Self {
        self.link.add_header(&mut self.signal.headers, &mut self.failure, name.into_name(), value);
        self
    }

    /// Adds a header that is encoded already.
    pub fn header_payload(mut self, name: impl IntoName, value: impl Into<Payload>) -> Self {
        self.signal.headers.insert(name.into_name(), value.into());
        self
    }
}

impl IntoFuture for SignalCall {
    type Output = Result<()>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            match self.failure {
                Some(failure) => Err(Error::value(failure)),
                None => Ok(self.link.client().signal(self.run, self.signal).await?),
            }
        })
    }
}
