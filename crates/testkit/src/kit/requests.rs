//! Requests of a test to the runs in its kit.

use dacapo::{ClientError, Error, Failure, Promise, Query, Signal, Status, Update};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Kit, KitRun};

impl Kit {
    /// Signals a run.
    #[track_caller]
    pub fn signal<O: 'static, T: Serialize + Clone>(
        &mut self,
        run: &KitRun<O>,
        signal: Signal<T>,
        value: T,
    ) -> Result<(), Error> {
        let (id, key) = (run.workflow_id.clone(), next_key(&mut self.last_key));
        let result = self.processes.insist(move |app| {
            let (handle, value, key) = (app.handle_raw(id.clone()), value.clone(), key.clone());
            async move { handle.signal(signal, value).request_id(key).await }
        });
        self.settle();
        result
    }

    /// Queries a run.
    #[track_caller]
    pub fn query<O, I: Serialize, A: DeserializeOwned>(
        &mut self,
        run: &KitRun<O>,
        query: Query<I, A>,
        input: I,
    ) -> Result<A, Error> {
        let handle = self.handle(run);
        self.wait(handle.query(query, input))
    }

    /// Sends an update and returns its answer. Time passes if the update takes any.
    #[track_caller]
    pub fn update<O: 'static, I: Serialize + Clone, A: DeserializeOwned + 'static>(
        &mut self,
        run: &KitRun<O>,
        update: Update<I, A>,
        input: I,
    ) -> Result<A, Error> {
        let (id, key) = (run.workflow_id.clone(), next_key(&mut self.last_key));
        let result = self.processes.insist(move |app| {
            app.handle_raw(id.clone()).update(update, input.clone()).request_id(key.clone()).into_future()
        });
        self.settle();
        result
    }

    /// Resolves a promise of a run.
    #[track_caller]
    pub fn resolve<O: 'static, T: Serialize + Clone>(
        &mut self,
        run: &KitRun<O>,
        promise: Promise<T>,
        value: T,
    ) -> Result<(), Error> {
        let (id, deaths) = (run.workflow_id.clone(), self.processes.deaths.len());
        let result = self.processes.insist(move |app| {
            let (handle, value) = (app.handle_raw(id.clone()), value.clone());
            async move { handle.resolve(promise, value).await }
        });
        self.settle();
        match result {
            // This resolution was stored, and its answer was lost when its process died.
            Err(Error::Client(ClientError::AlreadyResolved(_) | ClientError::Closed { .. }))
                if self.processes.deaths.len() > deaths =>
            {
                Ok(())
            }
            result => result,
        }
    }

    /// Completes the attempt of a completion token, or lets it fail.
    #[track_caller]
    pub fn complete<T: Serialize>(&mut self, token: &str, result: Result<T, Failure>) -> Result<(), Error> {
        let (deaths, token) = (self.processes.deaths.len(), token.to_owned());
        let converter = &self.catalog.layers.converter;
        let result = result.map(|value| converter.encode(&value).unwrap_or_else(|failure| panic!("{failure}")));
        let answer = self.processes.insist(move |app| {
            let answer = app.client().complete(token.clone(), result.clone());
            async move { Ok(answer.await?) }
        });
        self.settle();
        match answer {
            // This call was stored, and its answer was lost when its process died.
            Err(Error::Client(
                ClientError::ActivityNotFound { .. } | ClientError::StaleToken { .. } | ClientError::Closed { .. },
            )) if self.processes.deaths.len() > deaths => Ok(()),
            answer => answer,
        }
    }

    /// Terminates a run.
    #[track_caller]
    pub fn terminate<O: 'static>(&mut self, run: &KitRun<O>, reason: &'static str) -> Result<(), Error> {
        let (id, deaths) = (run.workflow_id.clone(), self.processes.deaths.len());
        let result = self.processes.insist(move |app| {
            let handle = app.handle_raw(id.clone());
            async move { handle.terminate(reason).await }
        });
        self.settle();
        match result {
            Err(Error::Client(ClientError::Closed { status: Status::Terminated, .. }))
                if self.processes.deaths.len() > deaths =>
            {
                Ok(())
            }
            result => result,
        }
    }

    /// Resets a run to an earlier turn.
    #[track_caller]
    pub fn reset<O: 'static>(&mut self, run: &KitRun<O>, turn: u64, reason: &'static str) -> Result<(), Error> {
        let id = run.workflow_id.clone();
        let result = self.processes.insist(move |app| {
            let handle = app.handle_raw(id.clone());
            async move { handle.reset(turn, reason).await.map(drop) }
        });
        self.settle();
        result
    }

    /// Asks a run to cancel.
    #[track_caller]
    pub fn cancel<O: 'static>(&mut self, run: &KitRun<O>, reason: &'static str) -> Result<(), Error> {
        let id = run.workflow_id.clone();
        let result = self.processes.insist(move |app| {
            let handle = app.handle_raw(id.clone());
            async move { handle.cancel(reason).await }
        });
        self.settle();
        result
    }
}

/// Returns a request id that this kit has not used: a request that is sent again after a crash has the same id.
fn next_key(last: &mut u64) -> String {
    *last += 1;
    format!("key-{last}")
}
