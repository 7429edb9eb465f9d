//! Sending an update.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

use dacapo_client::{PollUpdate, RunRef, SendUpdate, UpdateState, UpdateWait};
use dacapo_core::{Failure, Name, Payload};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::link::Link;
use crate::client::{Error, IntoName, Result};

/// An update of a run: await it for its answer, or first wait until it is [accepted](Self::accepted).
///
/// ```
/// # use dacapo::prelude::*;
/// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
/// const ADD: Update<u64, u64> = Update::new("add");
///
/// let total = run.update(ADD, 1_250).request_id("add-7").header("sent-by", "ada").await?;
/// # Ok(()) }
/// ```
#[must_use = "an update does nothing unless it is awaited"]
pub struct UpdateCall<A> {
    link: Link,
    run: RunRef,
    update: SendUpdate,
    failure: Option<Failure>,
    answer: PhantomData<fn() -> A>,
}

/// An update that was sent to a run: [answer](UpdateHandle::answer) waits for its answer.
pub struct UpdateHandle<A> {
    link: Link,
    run: RunRef,
    id: Name,
    answer: PhantomData<fn() -> A>,
}

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

    /// Sets the program's key for this request, which is the id of the update: a second update with the same key is the same
    /// update, however often it is sent.
    ///
    /// A rejection is an answer too: the same key gets the same rejection again, even with a value that is valid and after the
    /// run closed. To try again with another value, use a new key.
    pub fn request_id(mut self, request_id: impl IntoName) -> Self {
        self.update.id = request_id.into_name();
        self
    }

    /// Adds a header: a named value that travels beside the input. One that cannot be encoded fails the update.
    pub fn header<T: Serialize + ?Sized>(mut self, name: impl IntoName, value: &T) -> Self {
        self.link.add_header(&mut self.update.headers, &mut self.failure, name.into_name(), value);
        self
    }

    /// Adds a header that is encoded already.
    pub fn header_payload(mut self, name: impl IntoName, value: impl Into<Payload>) -> Self {
        self.update.headers.insert(name.into_name(), value.into());
        self
    }

    async fn send(self, wait: UpdateWait) -> Result<(UpdateState, UpdateHandle<A>)> {
        let Self { link, run, update, failure, .. } = self;
        if let Some(failure) = failure {
            return Err(Error::value(failure));
        }
        let handle = UpdateHandle { link, run, id: update.id.clone(), answer: PhantomData };
        let state = handle.link.client().update(handle.run.clone(), SendUpdate { wait, ..update }).await?;
        Ok((state, handle))
    }

    /// Sends the update, and waits until the workflow accepts it.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// const ADD: Update<u64, u64> = Update::new("add");
    ///
    /// let added = run.update(ADD, 1_250).accepted().await?;
    /// println!("update {} is accepted", added.id());
    /// println!("{} cents", added.answer().await?);
    /// # Ok(()) }
    /// ```
    pub async fn accepted(self) -> Result<UpdateHandle<A>> {
        Ok(self.send(UpdateWait::Accepted).await?.1)
    }
}

impl<A: DeserializeOwned + 'static> IntoFuture for UpdateCall<A> {
    type Output = Result<A>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (state, handle) = self.send(UpdateWait::Completed).await?;
            handle.answer_from(state).await
        })
    }
}

impl<A> UpdateHandle<A> {
    pub(crate) fn new(link: Link, run: RunRef, id: Name) -> Self {
        Self { link, run, id, answer: PhantomData }
    }

    /// Returns the id of the update.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits for the answer of the update.
    pub async fn answer(&self) -> Result<A>
    where
        A: DeserializeOwned,
    {
        self.answer_from(UpdateState::Accepted).await
    }

    async fn answer_from(&self, mut state: UpdateState) -> Result<A>
    where
        A: DeserializeOwned,
    {
        loop {
            match state {
                UpdateState::Completed(Ok(answer)) => {
                    return self.link.converter().decode(&answer).map_err(Error::value);
                }
                UpdateState::Completed(Err(failure)) => return Err(Error::Update(Box::new(failure))),
                // A backend may wait for less long than the caller.
                UpdateState::Accepted => {
                    let poll = PollUpdate { id: self.id.clone(), wait: UpdateWait::Completed };
                    state = self.link.client().update_result(self.run.clone(), poll).await?;
                }
            }
        }
    }
}
