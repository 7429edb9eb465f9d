//! Requests of a test to the runs in its kit.

use std::sync::Arc;

use dacapo::{ClientError, Error, Failure, Promise, Query, Signal, Status, Update};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Kit, KitRun};

impl Kit {
    /// Signals a run.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # const APPROVE: Signal<String> = Signal::new("approve");
    /// # #[workflow] async fn request(ctx: Ctx, what: String) -> Result<String, Failure> { Ok(format!("{what}, approved by {}", ctx.next_signal(APPROVE).await?)) }
    ///
    /// let mut kit = Kit::new();
    /// let run = kit.start(request, "a chair".into());
    /// kit.signal(&run, APPROVE, "mona".into()).unwrap();
    /// assert_eq!(kit.result(&run), Ok("a chair, approved by mona".into()));
    /// ```
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
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # const ADD: Update<u64, u64> = Update::new("add");
    /// # const TOTAL: dacapo::Query<(), u64> = dacapo::Query::new("total");
    /// # #[workflow] async fn cart(ctx: Ctx) -> Result<u64, Failure> {
    /// #     let total = ctx.cell(0);
    /// #     let (added, asked, full) = (total.clone(), total.clone(), total);
    /// #     ctx.on_query(TOTAL, move |()| Ok(asked.read(|total| *total)));
    /// #     ctx.on_update(ADD, |_| Ok(()), move |n| { let total = added.clone(); async move { *total.lock() += n; Ok(total.read(|total| *total)) } });
    /// #     ctx.wait_until(move || full.read(|total| *total >= 10)).await?;
    /// #     Ok(10)
    /// # }
    ///
    /// let mut kit = Kit::new();
    /// let run = kit.start(cart, ());
    /// kit.update(&run, ADD, 3).unwrap();
    /// assert_eq!(kit.query(&run, TOTAL, ()).unwrap(), 3);
    /// ```
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
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # const ADD: Update<u64, u64> = Update::new("add");
    /// # const TOTAL: dacapo::Query<(), u64> = dacapo::Query::new("total");
    /// # #[workflow] async fn cart(ctx: Ctx) -> Result<u64, Failure> {
    /// #     let total = ctx.cell(0);
    /// #     let (added, asked, full) = (total.clone(), total.clone(), total);
    /// #     ctx.on_query(TOTAL, move |()| Ok(asked.read(|total| *total)));
    /// #     ctx.on_update(ADD, |_| Ok(()), move |n| { let total = added.clone(); async move { *total.lock() += n; Ok(total.read(|total| *total)) } });
    /// #     ctx.wait_until(move || full.read(|total| *total >= 10)).await?;
    /// #     Ok(10)
    /// # }
    ///
    /// let mut kit = Kit::new();
    /// let run = kit.start(cart, ());
    /// assert_eq!(kit.update(&run, ADD, 3).unwrap(), 3);
    /// assert_eq!(kit.update(&run, ADD, 7).unwrap(), 10);
    /// ```
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
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # const ANSWER: Promise<bool> = Promise::new("answer");
    /// # #[workflow] async fn ask(ctx: Ctx) -> Result<bool, Failure> { ctx.promise(ANSWER).await }
    /// let mut kit = Kit::new();
    /// let run = kit.start(ask, ());
    /// kit.resolve(&run, ANSWER, true).unwrap();
    /// assert_eq!(kit.result(&run), Ok(true));
    /// ```
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
            Err(Error::Client(
                ClientError::AlreadyResolved(_) | ClientError::PromiseNotFound { .. } | ClientError::Closed { .. },
            )) if self.processes.deaths.len() > deaths => Ok(()),
            result => result,
        }
    }

    /// Completes the attempt of a completion token, or lets it fail.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// use std::sync::mpsc;
    ///
    /// # #[activity] async fn ask(who: String) -> Result<bool, Failure> { unimplemented!("tests ask no one") }
    /// # #[workflow] async fn decide(ctx: Ctx, who: String) -> Result<bool, Failure> { ctx.call(ask, who).await }
    /// let mut kit = Kit::new();
    /// let (tell, tokens) = mpsc::channel();
    /// kit.fake_with(ask, move |ctx, _| {
    ///     tell.send(ctx.completion_token()).unwrap();
    ///     async move { Err(ctx.complete_later()) }
    /// });
    /// let run = kit.start(decide, "mona".into());
    /// kit.complete(&tokens.recv().unwrap(), Ok(true)).unwrap();
    /// assert_eq!(kit.result(&run), Ok(true));
    /// ```
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
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # const APPROVE: Signal<String> = Signal::new("approve");
    /// # #[workflow] async fn request(ctx: Ctx, what: String) -> Result<String, Failure> { Ok(format!("{what}, approved by {}", ctx.next_signal(APPROVE).await?)) }
    ///
    /// let mut kit = Kit::new();
    /// let run = kit.start(request, "a chair".into());
    /// kit.terminate(&run, "there are chairs enough").unwrap();
    /// assert!(kit.is_closed(&run));
    /// ```
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
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
    /// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
    ///
    /// let mut kit = Kit::new();
    /// let charges = kit.fake(charge, |_| Ok(()));
    /// let run = kit.start(pay, 500);
    /// kit.result(&run).unwrap();
    /// kit.reset(&run, 1, "try the turn after the charge again").unwrap();
    /// assert_eq!(kit.result(&run), Ok(500));
    /// assert_eq!(charges.count(), 1); // Its result is kept.
    /// ```
    #[track_caller]
    pub fn reset<O: 'static>(&mut self, run: &KitRun<O>, turn: u64, reason: &'static str) -> Result<(), Error> {
        let id = run.workflow_id.clone();
        // Each reset makes a new run: one whose answer was lost when its process died is not made again.
        let before = Arc::new(Mutex::new(None));
        let result = self.processes.insist(move |app| {
            let (handle, before) = (app.handle_raw(id.clone()), before.clone());
            async move {
                let run_id = handle.describe().await?.run_id;
                let is_made = before.lock().replace(run_id.clone()).is_some_and(|before| before != run_id);
                if is_made { Ok(()) } else { handle.reset(turn, reason).await.map(drop) }
            }
        });
        self.settle();
        result
    }

    /// Asks a run to cancel.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # const APPROVE: Signal<String> = Signal::new("approve");
    /// # #[workflow] async fn request(ctx: Ctx, what: String) -> Result<String, Failure> { Ok(format!("{what}, approved by {}", ctx.next_signal(APPROVE).await?)) }
    ///
    /// let mut kit = Kit::new();
    /// let run = kit.start(request, "a chair".into());
    /// kit.cancel(&run, "there are chairs enough").unwrap();
    /// assert!(kit.result(&run).is_err());
    /// ```
    #[track_caller]
    pub fn cancel<O: 'static>(&mut self, run: &KitRun<O>, reason: &'static str) -> Result<(), Error> {
        let (id, deaths) = (run.workflow_id.clone(), self.processes.deaths.len());
        let result = self.processes.insist(move |app| {
            let handle = app.handle_raw(id.clone());
            async move { handle.cancel(reason).await }
        });
        self.settle();
        match result {
            // The request was stored, its answer was lost when its process died, and the next one has ended the run.
            Err(Error::Client(ClientError::Closed { .. })) if self.processes.deaths.len() > deaths => Ok(()),
            result => result,
        }
    }
}

/// Returns a request id that this kit has not used: a request that is sent again after a crash has the same id.
fn next_key(last: &mut u64) -> String {
    *last += 1;
    format!("key-{last}")
}
