//! The engine, and a reader of its store, as clients.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use dacapo_client::{
    Capabilities, Client, CompleteActivity, Cursor, Error, EventKind, Feature, Filter, OperationKind, PollUpdate,
    QueryRun, ResolvePromise, RunRef, SendSignal, SendUpdate, StartRun, Status, UpdateState, UpdateWait,
};
use dacapo_core::{ContinueAsNew, Ctx, Failure, Name, Order, Pins, PolicySpec};
use dacapo_engine::{Options, Reader, StoreClient};
use dacapo_store::{Doing, Done, MemoryStore, NoteSlot, RunningNotes, Store, Write};
use dacapo_testkit::{LayeredStore, Simulation, StoreLayer};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::kit::{Gate, Serve, options, payload, secs, text};

const ACCOUNT: Name = Name::from_static("account");

/// An account: takes deposits, answers queries and updates, calls an activity, waits for a promise.
fn serve(gate: &Gate) -> Options {
    let gate = gate.clone();
    options()
        .workflow("account", |ctx: Ctx, _| async move {
            ctx.on_query("how", |_| Ok(payload("well")));
            ctx.on_update("put", |_| Ok(()), |mut update| async move { Ok(update.input.remove(0)) });
            ctx.next_signal("go").await?;
            let done = ctx.activity("work", "x").await?;
            ctx.sleep(secs(1)).await?;
            let word = ctx.promise("word").await?;
            Ok(payload(format!("{done} {word}")))
        })
        .waiting("work", move |_, _| gate.pass())
}

fn client(sim: &Simulation) -> Arc<dyn Client> {
    Arc::new(sim.engine().clone())
}

/// A simulation, and a client that only reads its store.
fn with_reader(options: Options) -> (Simulation, Arc<dyn Client>) {
    let store = Arc::new(MemoryStore::new());
    let reader = StoreClient::new(Reader::new(store.clone()), "memory");
    (Simulation::over(store, options), Arc::new(reader))
}

fn start(id: &'static str) -> StartRun {
    StartRun { workflow: ACCOUNT, workflow_id: id.into(), input: vec![payload("")], ..StartRun::default() }
}

fn run(id: &'static str) -> RunRef {
    RunRef::latest(id)
}

/// The same after it was written as JSON and read again.
#[track_caller]
fn carried<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: T) -> T {
    let text = serde_json::to_string(&value).unwrap();
    let read = serde_json::from_str(&text).unwrap();
    assert_eq!(value, read, "{text}");
    read
}

#[test]
fn every_verb_of_a_client_reaches_the_engine_and_all_its_data_survives_json() {
    let gate = Gate::default();
    let sim = Simulation::new(serve(&gate));
    let client = client(&sim);
    let started = carried(sim.wait(client.start(carried(start("a")))).unwrap());
    assert!(started.is_new && started.run.run_id.is_some());
    let signal = SendSignal { name: "go".into(), input: vec![payload("")], ..SendSignal::default() };
    sim.wait(client.signal(run("a"), carried(signal))).unwrap();
    sim.settle();
    let query = QueryRun { name: "how".into(), ..QueryRun::default() };
    assert_eq!(sim.wait(client.query(run("a"), carried(query))).unwrap(), payload("well"));
    let update = SendUpdate { id: "u".into(), name: "put".into(), input: vec![payload("3")], ..SendUpdate::default() };
    let accepted = SendUpdate { wait: UpdateWait::Accepted, ..update.clone() };
    let answer = sim.wait(client.update(run("a"), update)).unwrap();
    assert_eq!(carried(answer), UpdateState::Completed(Ok(payload("3"))));
    sim.wait(client.update(run("a"), carried(accepted))).expect("the same update");
    let poll = |id: &'static str| carried(PollUpdate { id: id.into(), ..PollUpdate::default() });
    let answer = sim.wait(client.update_result(run("a"), poll("u"))).unwrap();
    assert_eq!(answer, UpdateState::Completed(Ok(payload("3"))));
    let unknown = carried(sim.wait(client.update_result(run("a"), poll("v"))).unwrap_err());
    assert_eq!(unknown, Error::UpdateNotFound { workflow_id: "a".into(), update_id: "v".into() });

    let described = carried(sim.wait(client.describe(run("a"))).unwrap());
    assert_eq!((described.status, described.pending.len()), (Status::Open, 1));
    let completion = CompleteActivity { activity_id: described.pending[0].id.clone(), result: Ok(payload("done")) };
    sim.wait(client.complete_activity(run("a"), carried(completion))).unwrap();
    sim.advance(secs(1));
    assert_eq!(carried(sim.wait(client.inspect(run("a"))).unwrap()).units.len(), 1);
    let word = ResolvePromise { promise: "word".into(), result: Ok(payload("kept")) };
    sim.wait(client.resolve_promise(run("a"), carried(word))).unwrap();
    let result = carried(sim.wait(client.result(started.run.clone())).unwrap());
    assert_eq!((result.status, text(&result.result.unwrap())), (Status::Completed, "done kept".to_owned()));
    assert_eq!(carried(sim.wait(client.raw_history(run("a"))).unwrap()).format, "dacapo-transcript");

    let again = sim.wait(client.reset(run("a"), 1, "again".into())).unwrap();
    assert_ne!(again.run.run_id, started.run.run_id);
    sim.wait(client.cancel(run("a"), "enough".into())).unwrap();
    sim.settle();
    assert_eq!(sim.wait(client.result_or_stuck(run("a"))).unwrap().status, Status::Cancelled);
    sim.wait(client.start(start("b"))).unwrap();
    assert!(matches!(sim.wait(client.release(run("b"))), Err(Error::InvalidArgument(_))), "nothing is quarantined");
    sim.wait(client.terminate(run("b"), "stop".into())).unwrap();
    assert_eq!(sim.wait(client.count(carried(Filter::open()))).unwrap(), 0);
    sim.wait(client.delete(run("b"))).unwrap();
    let gone = carried(sim.wait(client.describe(run("b"))).unwrap_err());
    assert_eq!(gone, Error::NotFound { workflow_id: "b".into(), run_id: None });
    assert_eq!(sim.wait(client.stuck_runs()).unwrap(), []);
    assert_eq!(sim.wait(client.verify(Box::new(|_| {}))).unwrap(), []);
    let refused = carried(sim.wait(client.complete("nonsense".into(), Ok(payload("")))).unwrap_err());
    assert!(matches!(refused, Error::InvalidToken(_)), "{refused:?}");
    let refused = sim.wait(client.heartbeat("nonsense".into(), payload(""))).unwrap_err();
    assert!(matches!(refused, Error::InvalidToken(_)), "{refused:?}");
    let refused = carried(sim.wait(client.back_up("/nowhere/at/all".into())).unwrap_err());
    assert_eq!(refused, Error::Unsupported { feature: Feature::Backup, backend: "memory".into() });
}

#[test]
fn history_lists_what_came_and_what_the_workflow_decided_in_order() {
    let gate = Gate::default();
    let (sim, reader) = with_reader(serve(&gate));
    let client = client(&sim);
    sim.wait(client.start(start("a"))).unwrap();
    let signal = SendSignal { name: "go".into(), input: vec![payload("")], ..SendSignal::default() };
    sim.wait(client.signal(run("a"), signal)).unwrap();
    gate.open(Err(Failure::application("broken").non_retryable()));
    sim.settle();
    let page = carried(sim.wait(client.history(run("a"), None, 100)).unwrap());
    assert_eq!(page.next, None);
    let events = &page.events;
    let kinds: Vec<&EventKind> = events.iter().map(|event| &event.kind).collect();
    let [started, signalled, scheduled, ended, closed] = kinds[..] else { panic!("{kinds:#?}") };
    assert!(matches!(started, EventKind::Started { workflow, .. } if *workflow == ACCOUNT));
    assert!(matches!(signalled, EventKind::Signalled { signal, .. } if signal.as_str() == "go"));
    let EventKind::OperationStarted(scheduled) = scheduled else { panic!("{scheduled:?}") };
    assert_eq!(scheduled.operation, OperationKind::Activity);
    assert_eq!((scheduled.name.as_str(), scheduled.input.len()), ("work", 1));
    assert!(matches!(ended, EventKind::OperationEnded { seq, result: Err(_), .. } if *seq == scheduled.seq));
    assert!(matches!(closed, EventKind::Closed { status: Status::Failed, result: Some(Err(_)), .. }));
    assert!(events.is_sorted_by_key(|event| event.turn));
    assert_eq!(sim.wait(reader.history(run("a"), None, 100)).unwrap(), page, "a reader sees the same");
    let (mut paged, mut after) = (Vec::new(), None);
    loop {
        let one = carried(sim.wait(reader.history(run("a"), after, 1)).unwrap());
        assert!(one.events.iter().all(|event| event.turn == one.events[0].turn), "a page is at least a turn: {one:?}");
        paged.extend(one.events);
        after = one.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(paged, *events);
    for (cursor, limit) in [(Some(Cursor("page 2".into())), 1), (None, 0)] {
        let refused = sim.wait(client.history(run("a"), cursor, limit)).unwrap_err();
        assert!(matches!(refused, Error::InvalidArgument(_)), "{refused:?}");
    }
}

#[test]
fn pages_end_at_a_cursor_that_the_next_call_takes() {
    let (sim, reader) = with_reader(serve(&Gate::default()));
    let client = client(&sim);
    for id in ["a", "b", "c"] {
        sim.wait(client.start(start(id))).unwrap();
    }
    for client in [client, reader] {
        let page = carried(sim.wait(client.list(Filter::all(), None, 2)).unwrap());
        let ids =
            |page: &dacapo_client::Page| page.runs.iter().map(|run| run.workflow_id.to_string()).collect::<Vec<_>>();
        assert_eq!(ids(&page), ["c", "b"]);
        let page = sim.wait(client.list(Filter::all(), page.next, 2)).unwrap();
        assert_eq!((ids(&page), page.next), (vec!["a".to_owned()], None));
        let foreign = sim.wait(client.list(Filter::all(), Some(Cursor("page 2".into())), 2)).unwrap_err();
        assert!(foreign.to_string().starts_with("invalid cursor \"page 2\": "), "{foreign}");
    }
}

/// The filter of a newer client.
#[test]
fn filter_by_a_status_that_this_build_does_not_know_is_refused() {
    let (sim, reader) = with_reader(serve(&Gate::default()));
    let filter: Filter = serde_json::from_str(r#"{"status":"paused"}"#).unwrap();
    for client in [client(&sim), reader] {
        let refused = [
            sim.wait(client.list(filter.clone(), None, 2)).unwrap_err(),
            sim.wait(client.count(filter.clone())).unwrap_err(),
        ];
        for error in refused {
            assert!(
                error.to_string().ends_with(
                    "ask for one of open, completed, failed, cancelled, terminated, timed out, continued as new"
                ),
                "{error}"
            );
        }
    }
}

#[test]
fn client_that_only_reads_refuses_every_change_and_names_what_it_lacks() {
    let (sim, reader) = with_reader(serve(&Gate::default()));
    sim.wait(client(&sim).start(start("a"))).unwrap();
    let changes = [
        sim.wait(reader.start(start("b"))).map(drop),
        sim.wait(reader.signal(run("a"), SendSignal::default())),
        sim.wait(reader.update(run("a"), SendUpdate::default())).map(drop),
        sim.wait(reader.cancel(run("a"), String::new())),
        sim.wait(reader.terminate(run("a"), String::new())),
        sim.wait(reader.reset(run("a"), 1, String::new())).map(drop),
        sim.wait(reader.complete(String::new(), Ok(payload("")))),
        sim.wait(reader.heartbeat(String::new(), payload(""))).map(drop),
    ];
    let lacks = |feature| Error::Unsupported { feature, backend: "memory, read-only".into() };
    for refused in changes {
        assert_eq!(refused, Err(lacks(Feature::Writing)));
    }
    assert_eq!(sim.wait(reader.query(run("a"), QueryRun::default())), Err(lacks(Feature::Queries)));
    assert_eq!(sim.wait(reader.update_result(run("a"), PollUpdate::default())), Err(lacks(Feature::Queries)));
    assert_eq!(sim.wait(reader.release(run("a"))), Err(lacks(Feature::Writing)));
    assert_eq!(sim.wait(reader.delete(run("a"))), Err(lacks(Feature::Writing)));
    assert_eq!(sim.wait(reader.inspect(run("a"))).unwrap_err(), lacks(Feature::Inspection));
    assert_eq!(reader.capabilities().require(Feature::Writing), Err(lacks(Feature::Writing)));
    let open = sim.wait(reader.result(run("a"))).unwrap_err();
    assert!(matches!(&open, Error::Refused(why) if why.contains("cannot wait for its end")), "{open}");
    sim.wait(client(&sim).terminate(run("a"), "enough".into())).unwrap();
    assert_eq!(sim.wait(reader.result(run("a"))).unwrap().status, Status::Terminated);
    let last = sim.wait(reader.history(run("a"), None, 100)).unwrap().events.pop().unwrap().kind;
    assert!(matches!(&last, EventKind::Closed { status: Status::Terminated, result: Some(Err(_)), .. }), "{last:?}");
    assert_eq!(sim.wait(reader.describe(run("a"))).unwrap().turns, 1);
}

/// A workflow that continues as new once, and whose updates wait for a signal.
fn slow_update() -> Options {
    let mut serve = options().workflow("account", |ctx: Ctx, round| async move {
        let inner = ctx.clone();
        let put = move |_| {
            let ctx = inner.clone();
            async move { Ok(ctx.next_signal("go").await?.input[0].clone()) }
        };
        ctx.on_update("put", |_| Ok(()), put);
        if text(&round).is_empty() {
            ctx.next_signal("next").await?;
            let (workflow, input) = (ACCOUNT, vec![payload("second")]);
            return Err(ctx.continue_as_new(ContinueAsNew { workflow, input, ..ContinueAsNew::default() }));
        }
        ctx.next_signal("end").await?;
        Ok(payload("over"))
    });
    // The root takes the signal before the update that comes with it is accepted.
    serve.pins.push((ACCOUNT, Pins { order: Order::RootFirst, ..Pins::default() }));
    serve
}

#[test]
fn update_is_found_by_its_id_while_it_is_open_after_a_restart_and_in_the_next_run_of_its_chain() {
    let poll = |wait| PollUpdate { id: "u".into(), wait };
    let signal = |sim: &Simulation, name: &'static str| {
        let signal = SendSignal { name: name.into(), input: vec![payload(name)], ..SendSignal::default() };
        sim.wait(client(sim).signal(run("a"), signal)).unwrap();
        sim.settle();
    };
    for restart in [false, true] {
        let mut sim = Simulation::new(slow_update());
        let first = sim.wait(client(&sim).start(start("a"))).unwrap().run;
        let update = SendUpdate { id: "u".into(), name: "put".into(), ..SendUpdate::default() };
        sim.settle();
        let next = SendSignal { name: "next".into(), input: vec![payload("")], ..SendSignal::default() };
        let mut cx = Context::from_waker(Waker::noop());
        let mut signalled = pin!(client(&sim).signal(run("a"), next));
        assert!(signalled.as_mut().poll(&mut cx).is_pending());
        let mut sent = client(&sim).update(run("a"), update);
        assert!(sent.as_mut().poll(&mut cx).is_pending());
        sim.wait(signalled).unwrap();
        assert_eq!(sim.try_wait(sent.as_mut()), None, "the second run waits for a signal");
        drop(sent);
        if restart {
            sim = sim.restart();
            sim.settle();
        }
        // By the id of the first run, too: the update was handed on.
        for to in [run("a"), first] {
            let accepted = sim.wait(client(&sim).update_result(to.clone(), poll(UpdateWait::Accepted)));
            assert_eq!(accepted, Ok(UpdateState::Accepted));
            assert_eq!(sim.try_wait(client(&sim).update_result(to, poll(UpdateWait::Completed))), None);
        }
        let client = client(&sim);
        let mut answer = pin!(client.update_result(run("a"), poll(UpdateWait::Completed)));
        assert_eq!(sim.try_wait(answer.as_mut()), None, "it waits for a signal");
        signal(&sim, "go");
        assert_eq!(sim.wait(answer), Ok(UpdateState::Completed(Ok(payload("go")))), "restarted: {restart}");
        signal(&sim, "end");
        let later = sim.wait(client.update_result(run("a"), poll(UpdateWait::Completed)));
        assert_eq!(later, Ok(UpdateState::Completed(Ok(payload("go")))), "the run is closed");
    }
}

/// A locator is what an earlier process, or another caller, says: the names decide.
#[test]
fn locator_of_another_run_is_not_believed() {
    let sim = Simulation::new(
        options().workflow("account", |ctx: Ctx, _| async move { Ok(ctx.next_signal("go").await?.input[0].clone()) }),
    );
    let client = client(&sim);
    let [a, b] = ["a", "b"].map(|id| sim.wait(client.start(start(id))).unwrap().run);
    sim.settle();
    for (id, word) in [("b", "of b"), ("a", "of a")] {
        let signal = SendSignal { name: "go".into(), input: vec![payload(word)], ..SendSignal::default() };
        let wrong = RunRef::exact("a", a.run_id.clone().unwrap()).found_at(b.locator().unwrap());
        let latest = RunRef::latest("a").found_at(b.locator().unwrap());
        let no_such = RunRef::exact("a", "no such run").found_at(a.locator().unwrap());
        let refused = sim.wait(client.result(no_such)).unwrap_err();
        assert!(matches!(refused, Error::NotFound { .. }), "{refused}");
        let (mut exact, mut latest) = (client.result(wrong), client.result(latest));
        let waited = [sim.try_wait(exact.as_mut()), sim.try_wait(latest.as_mut())];
        assert_eq!(waited, [None, None], "both wait for a");
        sim.wait(client.signal(run(id), signal)).unwrap();
        sim.settle();
        if id == "b" {
            assert_eq!(sim.try_wait(exact.as_mut()), None, "b has ended, and a has not");
            assert_eq!(sim.try_wait(latest.as_mut()), None);
        } else {
            assert_eq!(sim.wait(exact).unwrap().result, Ok(payload("of a")));
            assert_eq!(sim.wait(latest).unwrap().result, Ok(payload("of a")));
        }
    }
}

#[test]
fn backend_says_that_it_has_a_backup_only_if_its_store_has_one() {
    let (sim, reader) = with_reader(serve(&Gate::default()));
    assert!(!client(&sim).capabilities().has(Feature::Backup));
    assert!(!reader.capabilities().has(Feature::Backup));
    let refused = sim.wait(reader.back_up("/nowhere/at/all".into())).unwrap_err();
    assert_eq!(refused, Error::Unsupported { feature: Feature::Backup, backend: "memory, read-only".into() });
}

#[test]
fn backend_has_quarantine_only_if_its_store_keeps_notes_of_what_runs() {
    struct NotesNothing;
    impl StoreLayer for NotesNothing {
        fn submit(&self, store: &dyn Store, write: Write, done: Done) {
            store.submit(write, done);
        }

        fn running<'a>(&'a self, _: &'a dyn Store) -> &'a dyn RunningNotes {
            self
        }
    }
    impl RunningNotes for NotesNothing {
        fn began(&self, _: Doing) -> Option<NoteSlot> {
            None
        }

        fn ended(&self, _: NoteSlot) {}

        fn left(&self) -> Vec<Doing> {
            Vec::new()
        }

        fn forget_left(&self) {}
    }

    let sim = Simulation::new(serve(&Gate::default()));
    assert!(client(&sim).capabilities().has(Feature::Quarantine));
    let store = LayeredStore::new(Arc::new(MemoryStore::new()), NotesNothing);
    let sim = Simulation::over(store, serve(&Gate::default()));
    assert!(!client(&sim).capabilities().has(Feature::Quarantine));
    sim.wait(client(&sim).start(start("a"))).unwrap();
    let refused = sim.wait(client(&sim).release(run("a"))).unwrap_err();
    assert_eq!(refused, Error::Unsupported { feature: Feature::Quarantine, backend: "memory".into() });
}

#[test]
fn start_with_a_policy_is_refused_by_a_backend_that_has_none() {
    let mut options = serve(&Gate::default());
    options.capabilities = Capabilities::new("small", [Feature::Writing]);
    let sim = Simulation::new(options);
    let pins = Pins { policy: PolicySpec::Random { seed: 1 }, ..Pins::default() };
    let refused = sim.wait(client(&sim).start(StartRun { pins: Some(pins), ..start("a") })).unwrap_err();
    assert_eq!(refused, Error::Unsupported { feature: Feature::Policies, backend: "small".into() });
    sim.wait(client(&sim).start(StartRun { pins: Some(Pins::default()), ..start("a") })).unwrap();
}

#[test]
fn run_that_needs_a_feature_which_its_backend_lacks_is_stuck_and_names_both() {
    let mut options = options()
        .workflow("effect", |ctx: Ctx, _| async move { ctx.side_effect("dice", || async { Ok(payload("6")) }).await })
        .workflow("promise", |ctx: Ctx, _| async move { ctx.promise("word").await });
    options.capabilities = Capabilities::new("small", [Feature::Writing]);
    let sim = Simulation::new(options);
    sim.start("effect", "a", "").unwrap();
    sim.start("promise", "b", "").unwrap();
    sim.settle();
    let reason = |id| sim.wait(client(&sim).describe(run(id))).unwrap().stuck.unwrap().reason;
    assert_eq!(
        reason("a"),
        "side effect \"dice\" cannot run: this backend (small) does not support side effects: use a backend that has it"
    );
    assert_eq!(
        reason("b"),
        "promise \"word\" cannot be opened: this backend (small) does not support promises: use a backend that has it"
    );
}
