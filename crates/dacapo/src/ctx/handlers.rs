//! Handlers that live as long as the run: of signals, updates and queries.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use dacapo_core::{Failure, Name};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::recorded::ResultReader;
use crate::interceptor::InboundKind;
use crate::{Ctx, Query, Signal, Update};

impl<S> Ctx<S> {
    /// Handles every signal of this name, including those that have come already, for the rest of the run.
    ///
    /// Each handler is a unit of its own, and its failure ends no other unit. A signal that does not decode fails its handler
    /// alone.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
    /// # const PAY: Signal<String> = Signal::new("pay");
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let handled = ctx.clone();
    /// ctx.on_signal(PAY, move |order| {
    ///     let ctx = handled.clone();
    ///     async move { ctx.call(charge, order).await.map(drop) }
    /// });
    /// ctx.sleep(days(30)).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn on_signal<T, F, P>(&self, signal: Signal<T>, handler: F)
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T) -> P + Send + Sync + 'static,
        P: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        self.handle_signals(signal.into(), handler);
    }

    /// Handles every signal of this name, as JSON. See [`Ctx::on_signal`].
    #[track_caller]
    pub fn on_signal_raw<F, P>(&self, signal: impl Into<Name>, handler: F)
    where
        F: Fn(Value) -> P + Send + Sync + 'static,
        P: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        self.handle_signals(signal.into(), handler);
    }

    #[track_caller]
    fn handle_signals<T, F, P>(&self, name: Name, handler: F)
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T) -> P + Send + Sync + 'static,
        P: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let (converter, check) = (self.converter().clone(), self.check_message(InboundKind::Signal));
        self.raw.on_signal(name, move |signal| {
            let handler = handler.clone();
            let input = check(&signal.name, &signal.headers, &signal.input)
                .and_then(|()| converter.decode_message("signal", &signal.name, &signal.input));
            async move { handler(input?).await }
        });
    }

    /// Handles every update of this name for the rest of the run: a message that its sender gets an answer to.
    ///
    /// The validator decides whether the update is accepted; it only reads. The run's history has nothing of a rejected update,
    /// but the rejection is stored as the answer to its request id. The handler of an accepted update is a unit of its own, and
    /// its result is the answer.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # const ADD: Update<i64, i64> = Update::new("add");
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let total = ctx.cell(0);
    /// let added = total.clone();
    /// ctx.on_update(
    ///     ADD,
    ///     |n| if *n > 0 { Ok(()) } else { Err("add more than nothing".into()) },
    ///     move |n| {
    ///         let total = added.clone();
    ///         async move {
    ///             let mut total = total.lock();
    ///             *total += n;
    ///             Ok(*total)
    ///         }
    ///     },
    /// );
    /// ctx.wait_until(move || total.read(|total| *total >= 100)).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn on_update<I, O, V, F, P>(&self, update: Update<I, O>, validator: V, handler: F)
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + Send + 'static,
        V: Fn(&I) -> Result<(), Failure> + Send + Sync + 'static,
        F: Fn(I) -> P + Send + Sync + 'static,
        P: Future<Output = Result<O, Failure>> + Send + 'static,
    {
        self.handle_updates(update.into(), validator, handler);
    }

    /// Handles every update of this name, as JSON. See [`Ctx::on_update`].
    #[track_caller]
    pub fn on_update_raw<V, F, P>(&self, update: impl Into<Name>, validator: V, handler: F)
    where
        V: Fn(&Value) -> Result<(), Failure> + Send + Sync + 'static,
        F: Fn(Value) -> P + Send + Sync + 'static,
        P: Future<Output = Result<Value, Failure>> + Send + 'static,
    {
        self.handle_updates(update.into(), validator, handler);
    }

    #[track_caller]
    fn handle_updates<I, O, V, F, P>(&self, name: Name, validator: V, handler: F)
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + Send + 'static,
        V: Fn(&I) -> Result<(), Failure> + Send + Sync + 'static,
        F: Fn(I) -> P + Send + Sync + 'static,
        P: Future<Output = Result<O, Failure>> + Send + 'static,
    {
        // It passed the validator, so it was of this type then: one that is not any more is an unreadable record.
        let accepted = Arc::new(ResultReader::<I>::new(self, "accepted update", name.clone(), Location::caller()));
        let handler = Arc::new(handler);
        let (converter, check) = (self.converter().clone(), self.check_message(InboundKind::Update));
        let answers = converter.clone();
        self.raw.on_update(
            name,
            move |update| {
                check(&update.name, &update.headers, &update.input)?;
                validator(&converter.decode_message("update", &update.name, &update.input)?)
            },
            move |update| {
                let (handler, accepted, converter) = (handler.clone(), accepted.clone(), answers.clone());
                async move {
                    let input = accepted.value(update.input.first().unwrap_or(&Default::default()));
                    converter.encode(&handler(input).await?)
                }
            },
        );
    }

    /// Answers queries of this name. The handler reads what the workflow holds and changes nothing.
    ///
    /// A later handler of the same name takes the place of an earlier one.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # const DONE: dacapo::Query<(), u32> = dacapo::Query::new("done");
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let done = ctx.cell(0);
    /// let asked = done.clone();
    /// ctx.on_query(DONE, move |()| Ok(asked.read(|done| *done)));
    /// for _ in 0..10 {
    ///     ctx.sleep(mins(1)).await?;
    ///     *done.lock() += 1;
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn on_query<I, O>(&self, query: Query<I, O>, handler: impl Fn(I) -> Result<O, Failure> + Send + Sync + 'static)
    where
        I: DeserializeOwned + 'static,
        O: Serialize + 'static,
    {
        self.answer_queries(query.into(), handler);
    }

    #[track_caller]
    fn answer_queries<I, O>(&self, name: Name, handler: impl Fn(I) -> Result<O, Failure> + Send + Sync + 'static)
    where
        I: DeserializeOwned + 'static,
        O: Serialize + 'static,
    {
        let (converter, check) = (self.converter().clone(), self.check_message(InboundKind::Query));
        self.raw.on_query(name, move |query| {
            check(&query.name, &query.headers, &query.input)?;
            converter.encode(&handler(converter.decode_message("query", &query.name, &query.input)?)?)
        });
    }

    /// Answers queries of this name, as JSON. See [`Ctx::on_query`].
    #[track_caller]
    pub fn on_query_raw(
        &self,
        query: impl Into<Name>,
        handler: impl Fn(Value) -> Result<Value, Failure> + Send + Sync + 'static,
    ) {
        self.answer_queries(query.into(), handler);
    }
}
