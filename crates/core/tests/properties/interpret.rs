//! Plays a generated program on a real ctx. What results come to is folded into one number, which goes into later
//! commands, so that a result that is lost, doubled or taken out of order shows.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;
use std::time::Duration;

use dacapo_core::{
    CancelType, ContinueAsNew, Ctx, Either, Failure, FailureKind, Handled, Name, Payload, Retry, StateCell, Target,
    UnfinishedHandlers, Workflow,
};
use futures::future::{self, FutureExt};

use crate::coverage::{BROKEN, Marks, TAKEN};
use crate::program::{
    Block, HANDLED, How, Kill, NAMES, Op, PHASE_SIGNAL, PHASE_UPDATE, Phase, Program, QUERIES, Seqd, Step, TUNED,
    UPDATES, WAITED,
};

/// What a block comes to.
pub(crate) type ProgramFuture = Pin<Box<dyn Future<Output = Result<u64, Failure>> + Send>>;

/// Why the world cancels a run.
pub(crate) const CANCELLED: &str = "enough";

pub(crate) const WORKFLOW: &str = "generated";

/// The workflow that plays this program.
pub(crate) fn workflow(program: &Program, marks: &Marks) -> Workflow {
    let (body, marks) = (program.body.clone(), marks.clone());
    let unfinished = match program.wait_for_handlers {
        true => UnfinishedHandlers::Wait,
        false => UnfinishedHandlers::default(),
    };
    Workflow::new(WORKFLOW, move |ctx: Ctx, _| {
        let env = Env::new(ctx, marks.clone());
        let body = body.clone();
        async move { env.play(&body, Place::ROOT).await.map(|acc| Payload::from(acc.to_string())) }
    })
    .unfinished_handlers(unfinished)
}

/// What the units of one instance of a run share.
#[derive(Clone)]
struct Env {
    ctx: Ctx,
    marks: Marks,
    cell: StateCell<u64>,
    shelf: Arc<Mutex<Shelf>>,
}

#[derive(Default)]
struct Shelf {
    stored: Vec<ProgramFuture>,
    handled: BTreeSet<Name>,
    phase: bool,
}

/// Where a block is played.
#[derive(Clone, Copy)]
struct Place {
    root: bool,
    parallel: bool,
    /// Whether no cancellation of the run reaches it.
    shielded: bool,
}

impl Place {
    const ROOT: Self = Self { root: true, parallel: false, shielded: false };
    const UNIT: Self = Self { root: false, parallel: false, shielded: false };
}

impl Env {
    fn new(ctx: Ctx, marks: Marks) -> Self {
        let cell = ctx.state(0);
        Self { ctx, marks, cell, shelf: Arc::default() }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().expect("nothing panics with the shelf")
    }

    fn play(&self, block: &Block, place: Place) -> ProgramFuture {
        let (env, block) = (self.clone(), block.clone());
        Box::pin(async move {
            let mut acc = 1;
            for step in block.iter() {
                acc = env.step(step, place, acc).await?;
            }
            Ok(acc)
        })
    }

    fn all(&self, blocks: &[Block], place: Place) -> Vec<ProgramFuture> {
        blocks.iter().map(|block| self.play(block, place)).collect()
    }

    async fn step(&self, step: &Step, place: Place, acc: u64) -> Result<u64, Failure> {
        let came = match &step.op {
            Op::Start { what, name, input, how } => {
                let cancelled = self.ctx.cancellation().is_some();
                let came = self.start(*what, *name, *input + acc % 2, *how).await;
                self.check_result(*what, *how, place, cancelled, &came);
                came
            }
            Op::ContinueAsNew(value) if place.root => {
                self.marks.hit("continue as new");
                let next = ContinueAsNew { input: vec![value.to_string().into()], ..ContinueAsNew::default() };
                return Err(self.ctx.continue_as_new(next));
            }
            Op::Fail | Op::ContinueAsNew(_) => Err(Failure::application("the program fails")),
            Op::Phase(phase) => self.phase(phase, place).await,
            op if op.blocks().is_empty() => self.leaf(op, acc).await,
            op => self.inner(op, place).await,
        };
        match came {
            Ok(value) => Ok(fold(acc, &value.to_le_bytes())),
            Err(failure) if step.strict => Err(failure),
            Err(failure) => Ok(fold(acc, failure.message.as_bytes())),
        }
    }

    /// Cancellation is a level: a wait begun under it fails at once, and none in a shield does.
    fn check_result(&self, what: Seqd, how: How, place: Place, cancelled: bool, came: &Result<u64, Failure>) {
        let by_the_run = |failure: &Failure| failure.kind == FailureKind::Cancelled && failure.message == CANCELLED;
        if place.shielded && came.as_ref().is_err_and(by_the_run) {
            self.marks.hit(BROKEN[0]);
        }
        let waits =
            how == How::Await && matches!(what, Seqd::Timer | Seqd::Promise | Seqd::SideEffect | Seqd::SignalExternal);
        if waits && cancelled && came.is_ok() {
            self.marks.hit(BROKEN[1]);
        }
        if cancelled && self.ctx.cancellation().is_none() {
            self.marks.hit(BROKEN[2]);
        }
    }

    async fn start(&self, what: Seqd, name: usize, input: u64, how: How) -> Result<u64, Failure> {
        let Env { ctx, marks, .. } = self;
        // What is tuned follows from the name, so that commands of one meaning behave alike.
        let (place, cancel) = (name, [CancelType::TryCancel, CancelType::WaitCompleted, CancelType::Abandon][name]);
        let (name, text) = (NAMES[place], input.to_string());
        let duration = Duration::from_millis(500 + 1000 * input);
        // Detached, or made into one kind of future.
        macro_rules! deal {
            ($what:literal, $future:expr) => {{
                let future = $future;
                marks.hit($what);
                if how == How::Detach {
                    marks.hit("future detached");
                    future.detach();
                    return Ok(0);
                }
                future
            }};
        }
        let future: ProgramFuture = match what {
            Seqd::Activity => deal!("activity", ctx.activity(name, text)).map(value).boxed(),
            Seqd::Tuned => {
                let activity =
                    ctx.activity(TUNED[place], text).cancel_type(cancel).queue("other").summary("one of many");
                let activity = activity.retry(Retry::none()).start_to_close(duration).heartbeat(duration);
                deal!("activity with options", activity.header("trace", "1")).map(value).boxed()
            }
            Seqd::Local => {
                let local = ctx.local_activity(name, text).cancel_type(cancel).local_retry_threshold(duration);
                deal!("local activity", local).map(value).boxed()
            }
            Seqd::Timer => deal!("timer", ctx.sleep(duration)).map(|came| Ok(came.map(|()| 7)?)).boxed(),
            Seqd::Child => {
                let child = deal!("child", ctx.child(name, text).cancel_type(cancel));
                child.map(value).boxed()
            }
            Seqd::ChildStart => {
                let start = deal!("child start", ctx.child(name, text).cancel_type(cancel)).started();
                async move { start.await?.map(value).await }.boxed()
            }
            Seqd::SignalExternal => {
                let call = deal!("signal external", ctx.signal_external(Target::workflow(name), "note", text));
                call.map(|came| came.map(|()| 3)).boxed()
            }
            Seqd::CancelExternal => {
                let call = deal!("cancel external", ctx.cancel_external(Target::workflow(name), text));
                call.map(|came| came.map(|()| 5)).boxed()
            }
            Seqd::Promise => {
                marks.hit("promise");
                ctx.promise(name).map(value).boxed()
            }
            Seqd::SideEffect => {
                marks.hit("side effect");
                ctx.side_effect(name, || async { Ok(Payload::empty()) }).map(value).boxed()
            }
            Seqd::Nexus => deal!("nexus", ctx.nexus("end", "service", name, text)).map(value).boxed(),
        };
        match how {
            How::Await => future.await,
            How::Detach | How::Drop => {
                marks.hit("future dropped");
                Ok(0)
            }
            How::Store => {
                marks.hit("future stored");
                self.shelf().stored.push(future);
                Ok(0)
            }
        }
    }

    async fn leaf(&self, op: &Op, acc: u64) -> Result<u64, Failure> {
        let Env { ctx, marks, .. } = self;
        let none = |value: &Option<u64>| value.map(|value| Payload::from(value.to_string()));
        match op {
            Op::AwaitStored { newest } => {
                let stored = {
                    let mut shelf = self.shelf();
                    let place = if *newest { shelf.stored.len().saturating_sub(1) } else { 0 };
                    (place < shelf.stored.len()).then(|| shelf.stored.remove(place))
                };
                let Some(stored) = stored else { return Ok(0) };
                marks.hit("future awaited later");
                return stored.await;
            }
            Op::Glance => {
                let Some(mut stored) = self.shelf().stored.pop() else { return Ok(0) };
                marks.hit("future polled and kept");
                let glance = future::poll_fn(|cx| Poll::Ready(stored.poll_unpin(cx)));
                return match glance.await {
                    Poll::Ready(came) => came,
                    Poll::Pending => {
                        self.shelf().stored.push(stored);
                        Ok(1)
                    }
                };
            }
            Op::Signal(name) => {
                marks.hit("signal waited for");
                let signal = ctx.next_signal(WAITED[*name]).await?;
                marks.hit(TAKEN[*name]);
                return Ok(fold(0, bytes(&signal.input[0])));
            }
            Op::TrySignal(name) => {
                marks.hit("signal tried");
                let Some(signal) = ctx.try_signal(WAITED[*name]) else { return Ok(0) };
                marks.hit(TAKEN[*name]);
                return Ok(fold(1, bytes(&signal.input[0])));
            }
            Op::SetState(key, value) => {
                marks.hit("set state");
                ctx.set_state(NAMES[*key], format!("{value} {acc}"));
            }
            Op::GetState(key) => {
                marks.hit("get state");
                return Ok(ctx.get_state(NAMES[*key]).map_or(0, |value| fold(1, bytes(&value))));
            }
            Op::ClearState(key) => {
                marks.hit("clear state");
                ctx.clear_state(NAMES[*key]);
            }
            Op::Publish(value) => {
                marks.hit("publish");
                ctx.publish(format!("{value} {acc}"));
            }
            Op::Add(value) => {
                marks.hit("state cell");
                return Ok(self.cell.update(|cell| {
                    *cell += value;
                    *cell
                }));
            }
            Op::Attribute(key, value) => {
                marks.hit("search attribute");
                ctx.set_attrs([(NAMES[*key].into(), value.map(|value| value.to_string().into()))]);
            }
            Op::Memo(key, value) => {
                marks.hit("memo");
                ctx.set_memo([(NAMES[*key].into(), none(value))]);
            }
            Op::Deprecated(id) => {
                marks.hit("deprecated patch");
                ctx.deprecate_patch(["d0", "d1"][*id]);
            }
            Op::Now => {
                marks.hit("now");
                return Ok(ctx.now().as_millis());
            }
            Op::Random => {
                marks.hit("random");
                return Ok(ctx.random_u64() % 8 + u64::from(ctx.random() < 0.5));
            }
            Op::Uuid => {
                marks.hit("uuid");
                return Ok(fold(0, ctx.uuid().to_string().as_bytes()));
            }
            Op::Info => {
                marks.hit("info");
                let info = ctx.info().ok_or_else(|| Failure::application("no info"))?;
                return Ok(info.turn + info.memo.len() as u64 + u64::from(ctx.cancellation().is_some()));
            }
            Op::Yield => {
                marks.hit("yield");
                ctx.yield_now().await;
            }
            Op::WaitUntil(least) => {
                marks.hit("wait until");
                let (cell, least) = (self.cell.clone(), *least);
                ctx.wait_until(move || cell.read(|value| *value >= least)).await?;
            }
            Op::OnQuery(name) if self.shelf().handled.insert(QUERIES[*name].into()) => {
                marks.hit("query handler");
                let cell = self.cell.clone();
                ctx.on_query(QUERIES[*name], move |_| Ok(cell.read(u64::to_string).into()));
            }
            // A combinator of no blocks at all, which shrinking makes.
            _ => {}
        }
        Ok(0)
    }

    async fn inner(&self, op: &Op, place: Place) -> Result<u64, Failure> {
        let Env { ctx, marks, .. } = self;
        match op {
            Op::Patched(id, block) => {
                marks.hit("patched");
                if ctx.patched(["p0", "p1"][*id]) { self.play(block, place).await } else { Ok(0) }
            }
            Op::Choose(blocks) => {
                marks.hit("choose");
                let chosen = ctx.choose(blocks.len() as u32) as usize;
                self.play(&blocks[chosen], place).await.map(|value| value + chosen as u64)
            }
            Op::Parallel(blocks) => {
                marks.hit(if place.parallel { "nested parallel" } else { "parallel" });
                let inside = Place { root: false, parallel: true, ..place };
                Ok(sum(ctx.parallel(self.all(blocks, inside)).await))
            }
            Op::Join(blocks) => {
                marks.hit("join");
                Ok(sum(ctx.join(self.all(blocks, place)).await))
            }
            Op::TryJoin(blocks) => {
                marks.hit("try join");
                Ok(sum(ctx.try_join(self.all(blocks, place)).await?.into_iter().map(Ok)))
            }
            Op::ForeignJoin(blocks) => {
                marks.hit("foreign join");
                Ok(sum(future::join_all(self.all(blocks, place)).await))
            }
            Op::Race(first, second) => {
                marks.hit("race");
                match ctx.race(self.play(first, place), self.play(second, place)).await? {
                    Either::First(value) => Ok(value),
                    Either::Second(value) => Ok(value + 100),
                }
            }
            Op::SelectAll(blocks) => {
                marks.hit("select all");
                let (winner, came, rest) = ctx.select_all(self.all(blocks, place)).await;
                // One of the others is awaited all the same: losing a race must not spoil it.
                let other = match rest.is_empty() {
                    true => 0,
                    false => rest.await.1.unwrap_or(9),
                };
                Ok(came? + winner as u64 + other)
            }
            Op::ForeignSelect(first, second) => {
                marks.hit("foreign select");
                match future::select(self.play(first, place), self.play(second, place)).await {
                    future::Either::Left((value, _)) => value,
                    future::Either::Right((value, _)) => Ok(value? + 100),
                }
            }
            Op::Timeout(secs, block) => {
                marks.hit("timeout");
                ctx.with_timeout(Duration::from_secs(*secs), self.play(block, place)).await
            }
            Op::Launch(block, how) => {
                marks.hit("launch");
                let launched = ctx.launch(self.play(block, Place::UNIT));
                match how {
                    How::Await | How::Detach => {
                        marks.hit("launched unit awaited");
                        Ok(launched.await?)
                    }
                    How::Drop => Ok(0),
                    How::Store => {
                        self.shelf().stored.push(launched.map(|came| Ok(came?)).boxed());
                        Ok(0)
                    }
                }
            }
            Op::Scope(body, units) => {
                marks.hit("strict scope");
                let (body, units) = (self.play(body, Place { shielded: false, ..place }), self.all(units, Place::UNIT));
                ctx.scope(|scope| async move {
                    units.into_iter().for_each(|unit| scope.launch(unit.map(|came| came.map(drop))));
                    body.await
                })
                .await
            }
            Op::Cancellable(body, kill) => self.cancellable(body, kill, place).await,
            Op::Shield(block) => {
                marks.hit("shield");
                let before = ctx.cancellation().is_some();
                let came = ctx.shield(self.play(block, Place { shielded: true, ..place })).await;
                if before && ctx.cancellation().is_none() {
                    marks.hit(BROKEN[2]);
                }
                came
            }
            Op::OnSignal(name, block) => {
                if self.shelf().handled.insert(HANDLED[*name].into()) {
                    let (env, block) = (self.clone(), block.clone());
                    ctx.on_signal(HANDLED[*name], move |_| {
                        env.marks.hit("signal handler");
                        env.play(&block, Place::UNIT).map(|came| came.map(drop))
                    });
                }
                Ok(0)
            }
            Op::OnUpdate(name, block) => {
                if self.shelf().handled.insert(UPDATES[*name].into()) {
                    let (env, block) = (self.clone(), block.clone());
                    ctx.on_update(UPDATES[*name], validate, move |_| {
                        env.marks.hit("update handler");
                        env.play(&block, Place::UNIT).map(|came| came.map(|value| value.to_string().into()))
                    });
                }
                Ok(0)
            }
            _ => unreachable!("not an operation with blocks: {op:?}"),
        }
    }

    async fn cancellable(&self, body: &Block, kill: &Kill, place: Place) -> Result<u64, Failure> {
        self.marks.hit("cancellable");
        let place = Place { shielded: false, ..place };
        let (future, handle) = self.ctx.cancellable(self.play(body, place));
        let killer = match kill {
            Kill::Never => return future.await,
            Kill::First => {
                self.marks.hit("scope cancelled");
                handle.cancel("at once");
                return future.await;
            }
            Kill::After(killer) => self.play(killer, place),
        };
        let marks = self.marks.clone();
        let killing = async move {
            killer.await?;
            marks.hit("scope cancelled");
            handle.cancel("killed");
            Ok(0)
        };
        Ok(sum(self.ctx.join([future.boxed(), killing.boxed()]).await))
    }

    async fn phase(&self, phase: &Phase, place: Place) -> Result<u64, Failure> {
        if !place.root || std::mem::replace(&mut self.shelf().phase, true) {
            return Ok(0);
        }
        let _closed = Closed(self.shelf.clone());
        self.marks.hit("phase");
        let until = self.cell.read(|value| *value) + phase.until;
        let mut builder = self.ctx.phase(&self.cell).until(move |value| *value >= until);
        if let Some(secs) = phase.timeout {
            builder = builder.timeout(Duration::from_secs(secs));
        }
        if !phase.serial {
            builder = builder.concurrent();
        }
        let (signals, updates) = (self.clone(), self.clone());
        let (on_signal, on_update) = (phase.handler.clone(), phase.handler.clone());
        let ended = builder
            .on_signal(PHASE_SIGNAL, move |value, _| {
                *value += 1;
                signals.handled(&on_signal)
            })
            .on_update(
                PHASE_UPDATE,
                |_, update| validate(update),
                move |value, _| {
                    *value += 1;
                    updates.handled(&on_update)
                },
            )
            .await?;
        Ok(ended as u64)
    }

    fn handled(&self, handler: &Option<Block>) -> Handled {
        self.marks.hit("phase handler");
        match handler {
            None => Handled::done(),
            Some(block) => Handled::with(self.play(block, Place::UNIT).map(|came| came.map(|v| v.to_string().into()))),
        }
    }
}

/// Says that a phase is over when it is, or is dropped.
struct Closed(Arc<Mutex<Shelf>>);

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.lock().expect("nothing panics with the shelf").phase = false;
    }
}

fn validate(update: &dacapo_core::Update) -> Result<(), Failure> {
    match update.input.first().and_then(Payload::as_text) {
        Some(text) if text.starts_with("bad") => Err(Failure::application("a bad update")),
        _ => Ok(()),
    }
}

fn value(came: Result<Payload, Failure>) -> Result<u64, Failure> {
    came.map(|payload| fold(0, bytes(&payload)))
}

fn bytes(payload: &Payload) -> &[u8] {
    payload.bytes().expect("no payload is kept elsewhere")
}

fn fold(acc: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(acc, |acc, byte| (acc * 31 + u64::from(*byte)) % 1_000_003)
}

fn sum(came: impl IntoIterator<Item = Result<u64, Failure>>) -> u64 {
    came.into_iter().fold(0, |acc, came| match came {
        Ok(value) => fold(acc, &value.to_le_bytes()),
        Err(failure) => fold(acc, failure.message.as_bytes()),
    })
}
