//! Handlers that live as long as the run: of signals, updates and queries.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use dacapo_core::{Failure, Name};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::recorded::Recorded;
use crate::interceptor::InboundKind;
use crate::{Ctx, Query, Signal, Update};

impl<S> Ctx<S> {
    /// Handles every signal of this name, those that have come included. Each is a unit of its own; its failure is its
    /// own. One that does not decode fails alone.
    #[track_caller]
    pub fn on_signal<T, F, P>(&self, signal: Signal<T>, handler: F)
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T) -> P + Send + Sync + 'static,
        P: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        self.handle_signals(signal.into(), handler);
    }

    /// [`Ctx::on_signal`] for a signal that is only known by its name.
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

    /// Handles every update of this name. The validator says, before anything is recorded, whether it is accepted; it only
    /// looks. The handler of an accepted update is a unit of its own; what it returns is the sender's answer.
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

    /// [`Ctx::on_update`] for an update that is only known by its name.
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
        let accepted = Arc::new(Recorded::<I>::new(self, "accepted update", name.clone(), Location::caller()));
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

    /// Answers queries of this name from the workflow's state, which it only reads. A later handler of the same name takes
    /// its place.
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

    /// [`Ctx::on_query`] for a query that is only known by its name.
    #[track_caller]
    pub fn on_query_raw(
        &self,
        query: impl Into<Name>,
        handler: impl Fn(Value) -> Result<Value, Failure> + Send + Sync + 'static,
    ) {
        self.answer_queries(query.into(), handler);
    }
}
