//! Sending an update.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

use dacapo_client::{RunRef, SendUpdate, UpdateState, UpdateWait};
use dacapo_core::{Failure, Name, Payload};
use serde::de::DeserializeOwned;

use crate::client::link::Link;
use crate::client::{Error, IntoName, Result};
use crate::decode;

/// An update that is about to be sent: await it for its answer.
#[must_use = "an update does nothing unless it is awaited"]
pub struct UpdateCall<A> {
    link: Link,
    run: RunRef,
    update: SendUpdate,
    failure: Option<Failure>,
    answer: PhantomData<fn() -> A>,
}

/// An update that the workflow accepted.
pub struct UpdateHandle<A>(UpdateCall<A>);

impl<A> UpdateCall<A> {
    pub(crate) fn new(link: Link, run: RunRef, name: Name, input: std::result::Result<Payload, Failure>) -> Self {
        let (input, failure) = match input {
            Ok(input) => (vec![input], None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        let id = uuid::Uuid::now_v7().to_string().into();
        let update = SendUpdate { id, name, input, ..SendUpdate::default() };
        Self { link, run, update, failure, answer: PhantomData }
    }

    /// The program's key for this request, which is the id of the update: a second update with the same key is the same
    /// update, however often it is sent.
    pub fn request_id(mut self, request_id: impl IntoName) -> Self {
        self.update.id = request_id.into_name();
        self
    }

    async fn send(&self, wait: UpdateWait) -> Result<UpdateState> {
        if let Some(failure) = &self.failure {
            return Err(Error::value(failure.clone()));
        }
        let update = SendUpdate { wait, ..self.update.clone() };
        Ok(self.link.client().update(self.run.clone(), update).await?)
    }

    /// Sends it, and waits until the workflow accepts it.
    pub async fn accepted(self) -> Result<UpdateHandle<A>> {
        self.send(UpdateWait::Accepted).await?;
        Ok(UpdateHandle(self))
    }

    async fn answer(&self) -> Result<A>
    where
        A: DeserializeOwned,
    {
        loop {
            match self.send(UpdateWait::Completed).await? {
                UpdateState::Completed(Ok(answer)) => return decode(&answer).map_err(Error::value),
                UpdateState::Completed(Err(failure)) => return Err(Error::Update(Box::new(failure))),
                // A backend may wait for less long than we do.
                UpdateState::Accepted => {}
            }
        }
    }
}

impl<A: DeserializeOwned + 'static> IntoFuture for UpdateCall<A> {
    type Output = Result<A>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.answer().await })
    }
}

impl<A> UpdateHandle<A> {
    /// The id of the update.
    pub fn id(&self) -> &str {
        &self.0.update.id
    }

    /// Waits for the answer.
    pub async fn answer(&self) -> Result<A>
    where
        A: DeserializeOwned,
    {
        // The same id again is the same update.
        self.0.answer().await
    }
}
