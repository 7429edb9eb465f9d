//! Items that can be served, and the auto traits of public types.

use std::sync::Arc;

use dacapo::Query;
use dacapo::core::{Pins, Workflow};
use dacapo::prelude::*;
use dacapo::{Call, Catalog, Child, LocalCall, OpenPromise, Order, RegistryError, SideEffect, SignalWait, WorkflowDef};
use dacapo_worker::Activity;

#[activity]
async fn ping() -> Result<(), Failure> {
    Ok(())
}

#[activity]
async fn pong(n: u64) -> Result<u64, Failure> {
    Ok(n)
}

#[workflow(order = "root_first")]
async fn game(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    ctx.call(pong, n).await
}

struct Table;

#[activities]
impl Table {
    #[activity]
    async fn clear(self: Arc<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

#[derive(Default)]
struct Match;

#[workflow]
impl Match {
    #[run]
    async fn run(ctx: Ctx<Self>) -> Result<(), Failure> {
        ctx.call(ping, ()).await
    }
}

fn names(catalog: &Catalog) -> (Vec<&str>, Vec<&str>) {
    let workflows = catalog.registry.workflows().map(|name| name.as_str()).collect();
    (workflows, catalog.registry.activities().map(|name| name.as_str()).collect())
}

#[test]
fn functions_values_raw_definitions_tuples_and_vectors_are_served() {
    let raw = Workflow::new("raw", |_, _| async { Ok(dacapo::Payload::empty()) });
    let pinned = WorkflowDef::from(Workflow::new("pinned", |_, _| async { Ok(dacapo::Payload::empty()) }));
    let activity = |name: &'static str| Activity::new(name, |_, _| async { Ok(dacapo::Payload::empty()) });
    let many = vec![activity("one"), activity("two")];
    let catalog = Catalog::of((game, (ping, pong), Match::run, Table, raw, pinned, many, ())).unwrap();
    assert_eq!(
        names(&catalog),
        (vec!["Match", "game", "pinned", "raw"], vec!["Table::clear", "one", "ping", "pong", "two"])
    );
    let ordered = Pins { order: Order::RootFirst, ..Pins::default() };
    assert_eq!((&catalog.pins["game"], &catalog.pins["Match"]), (&ordered, &Pins::default()));
    let shared = Catalog::of(Arc::new(Table)).unwrap();
    assert_eq!(names(&shared), (vec![], vec!["Table::clear"]));
}

#[test]
fn second_registration_of_a_name_is_refused() {
    let error = Catalog::of((ping, ping)).unwrap_err();
    assert_eq!(error, RegistryError::Twice { kind: "activity", name: "ping".into() });
}

#[test]
fn tuple_of_sixteen_items_can_be_served() {
    let item = |n: usize| vec![Activity::new(format!("a{n}"), |_, _| async { Ok(dacapo::Payload::empty()) })];
    let catalog = Catalog::of((
        item(0),
        item(1),
        item(2),
        item(3),
        item(4),
        item(5),
        item(6),
        item(7),
        item(8),
        item(9),
        item(10),
        item(11),
        item(12),
        item(13),
        item(14),
        item(15),
    ));
    assert_eq!(names(&catalog.unwrap()).1.len(), 16);
}

/// Not `Sync`, not `Unpin`: what travels need not be.
type Odd = (std::cell::Cell<u8>, std::marker::PhantomPinned);

#[test]
fn futures_of_the_ctx_can_be_stored_and_sent_and_names_copied() {
    fn stored<F: Send + Unpin + 'static>() {}
    fn shared<T: Send + Sync + Copy + 'static>() {}
    fn ctx<T: Send + Sync + Clone + 'static>() {}
    stored::<Call<Odd>>();
    stored::<LocalCall<Odd>>();
    stored::<Child<Odd>>();
    stored::<dacapo::ChildStart<Odd>>();
    stored::<dacapo::StartedChild<Odd>>();
    stored::<SideEffect<Odd>>();
    stored::<OpenPromise<Odd>>();
    stored::<SignalWait<Odd>>();
    stored::<dacapo::NexusCall<Odd>>();
    stored::<dacapo::NOfM<Call<u8>, u8>>();
    shared::<Signal<Odd>>();
    shared::<Query<Odd, Odd>>();
    shared::<Update<Odd, Odd>>();
    shared::<Promise<Odd>>();
    shared::<Key<Odd>>();
    shared::<Attr<Odd>>();
    ctx::<Ctx>();
    ctx::<Ctx<Vec<u8>>>();
    assert_eq!(format!("{:?}", Signal::<Odd>::new("go")), r#"Signal "go""#);
}
