//! Sending an update.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use dacapo_core::{Failure, Name, Payload};
use dacapo_engine::{RunId, UpdateStage, WaitFor};
use serde::de::DeserializeOwned;

use crate::client::serving::Serving;
use crate::client::{Error, IntoName, Result};
use crate::decode;

/// An update that is about to be sent: await it for its answer.
#[must_use = "an update does nothing unless it is awaited"]
pub struct UpdateCall<A> {
    serving: Arc<Serving>,
    run: RunId,
    update: dacapo_core::Update,
    failure: Option<Failure>,
    answer: PhantomData<fn() -> A>,
}

/// An update that the workflow accepted.
pub struct UpdateHandle<A>(UpdateCall<A>);

impl<A> UpdateCall<A> {
    pub(crate) fn new(
        serving: Arc<Serving>,
        run: RunId,
        name: Name,
        input: std::result::Result<Payload, Failure>,
    ) -> Self {
        let (input, failure) = match input {
            Ok(input) => (vec![input], None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        let id = uuid::Uuid::now_v7().to_string().into();
        let update = dacapo_core::Update { id, name, input, ..Default::default() };
        Self { serving, run, update, failure, answer: PhantomData }
    }

    /// The program's own id for it: the same id again is the same update, however often it is sent.
    pub fn id(mut self, id: impl IntoName) -> Self {
        self.update.id = id.into_name();
        self
    }

    async fn send(&self, wait: WaitFor) -> Result<UpdateStage> {
        if let Some(failure) = &self.failure {
            return Err(Error::value(failure.clone()));
        }
        Ok(self.serving.engine.update(&self.run, self.update.clone(), wait).await?)
    }

    /// Sends it, and waits until the workflow accepts it.
    pub async fn accepted(self) -> Result<UpdateHandle<A>> {
        self.send(WaitFor::Accepted).await?;
        Ok(UpdateHandle(self))
    }

    async fn answer(&self) -> Result<A>
    where
        A: DeserializeOwned,
    {
        match self.send(WaitFor::Completed).await? {
            UpdateStage::Completed(Ok(answer)) => decode(&answer).map_err(Error::value),
            UpdateStage::Completed(Err(failure)) => Err(Error::Update(Box::new(failure))),
            UpdateStage::Accepted => unreachable!("the answer was waited for"),
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
