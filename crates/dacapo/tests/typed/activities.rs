//! Activities, called as functions and as a worker calls them.

use std::sync::{Arc, Mutex};

use dacapo::prelude::*;
use dacapo::{ActivityInfo, Catalog, Payload};
use dacapo_worker::{Activity, ActivityCode, ActivityCtx as RawCtx};
use futures::executor::block_on;
use serde::{Deserialize, Serialize};

/// Calls an activity as a worker does.
fn serve<P>(items: impl Register<P>, name: &str, ctx: RawCtx, input: Vec<Payload>) -> Result<Payload, Failure> {
    let catalog = Catalog::of(items).unwrap();
    let activity: &Activity = catalog.registry.find_activity(name).unwrap();
    match activity.code() {
        ActivityCode::Async(body) => block_on(body(ctx, input)),
        ActivityCode::Blocking(body) => body(ctx, input),
    }
}

/// A function in a module of its own name, to be seen from here.
mod double {
    use dacapo::prelude::*;

    #[activity]
    pub(crate) async fn double(n: u64) -> Result<u64, Failure> {
        Ok(2 * n)
    }
}

use double::double;

#[activity]
async fn greet(ctx: ActivityCtx, mut greeting: String, (first, last): (String, String)) -> Result<String, Failure> {
    greeting.push_str(&format!(" {first} {last}, try {}", ctx.info().attempt));
    Ok(greeting)
}

#[activity]
fn blocking_sum(a: u64, b: u64, c: u64, d: u64) -> Result<u64, String> {
    match a + b + c + d {
        0 => Err("nothing to sum".to_owned()),
        sum => Ok(sum),
    }
}

#[test]
fn an_activity_is_a_function_that_a_unit_test_can_call() {
    assert_eq!(block_on(double(4)), Ok(8));
    assert_eq!(double(4).wait(), Ok(8));
    let names = ("ada".to_owned(), "lovelace".to_owned());
    let greeted = block_on(greet(ActivityCtx::detached(), "hello".to_owned(), names));
    assert_eq!(greeted.as_deref(), Ok("hello ada lovelace, try 1"));
    assert_eq!(blocking_sum(1, 2, 3, 4).wait(), Ok(10));
}

#[test]
fn worker_calls_an_activity_with_payloads() {
    let ctx = RawCtx::detached;
    assert_eq!(serve(double, "double", ctx(), vec!["4".into()]), Ok("8".into()));
    let input = vec![r#""hi""#.into(), r#"["a","b"]"#.into()];
    assert_eq!(serve(greet, "greet", ctx(), input), Ok(r#""hi a b, try 1""#.into()));
    let input = vec!["1".into(), "2".into(), "3".into(), "4".into()];
    assert_eq!(serve(blocking_sum, "blocking_sum", ctx(), input), Ok("10".into()));
    let zeros = vec!["0".into(); 4];
    assert_eq!(serve(blocking_sum, "blocking_sum", ctx(), zeros), Err(Failure::application("nothing to sum")));
}

/// S4-55
#[test]
fn an_input_that_does_not_decode_is_not_tried_again() {
    let failure = serve(double, "double", RawCtx::detached(), vec![r#""four""#.into()]).unwrap_err();
    assert_eq!((failure.type_name.as_deref(), failure.non_retryable), (Some("BadInput"), true));
    assert_eq!(
        failure.message,
        r#"argument `n`: the value cannot be read as `u64`: invalid type: string "four", expected u64 at line 1 column 6; it is `"four"`"#
    );
}

struct Bank {
    fee: u64,
}

#[activities]
impl Bank {
    /// Charges.
    #[activity]
    async fn charge(self: Arc<Self>, cents: u64) -> Result<u64, Failure> {
        Ok(self.total(cents))
    }

    #[activity(name = "refund")]
    fn refund(self: Arc<Self>, ctx: ActivityCtx, cents: u64, why: Option<String>) -> Result<String, Failure> {
        Ok(format!("{} {why:?} {}", cents - self.fee, ctx.info().attempt))
    }

    fn total(&self, cents: u64) -> u64 {
        cents + self.fee
    }
}

#[test]
fn activity_methods_are_served_with_their_value() {
    let bank = Arc::new(Bank { fee: 2 });
    assert_eq!(block_on(bank.clone().charge(5)), Ok(7));
    assert_eq!(serve(bank.clone(), "Bank::charge", RawCtx::detached(), vec!["5".into()]), Ok("7".into()));
    let refunded = serve(Bank { fee: 1 }, "refund", RawCtx::detached(), vec!["5".into()]);
    assert_eq!(refunded, Ok(r#""4 None 1""#.into()));
}

#[workflow]
async fn pays(ctx: Ctx, cents: u64) -> Result<u64, Failure> {
    ctx.call(Bank::refund, (cents, None)).await?;
    ctx.call(Bank::charge, cents).await
}

#[test]
fn activity_method_is_called_by_its_path() {
    use dacapo_testkit::expect;
    crate::kit::check(
        pays,
        r#"start = 5
           resolve refund = "ok"
           resolve Bank::charge = 6"#,
        expect![[r#"
            turn 0  [] activity refund
            turn 1  [] activity Bank::charge
            turn 2  [] complete 6
        "#]],
    );
}

/// A type of the user's own. The prelude has nothing of this name that it would hide.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Progress {
    done: u64,
}

#[activity]
async fn resumes(ctx: ActivityCtx) -> Result<u64, Failure> {
    let done = ctx.details::<Progress>()?.map_or(0, |progress| progress.done);
    ctx.heartbeat(&Progress { done: done + 1 })?;
    Ok(done)
}

/// A ctx whose earlier attempt reported `details`, and the reports of this attempt.
fn resumed(details: &'static str) -> (ActivityCtx, Arc<Mutex<Vec<Payload>>>) {
    let info = ActivityInfo { details: Some(details.into()), ..ActivityInfo::default() };
    let reports = Arc::<Mutex<Vec<Payload>>>::default();
    let heartbeats = reports.clone();
    let raw = RawCtx::new(info, Arc::new(move |report| heartbeats.lock().unwrap().push(report)), usize::MAX);
    (raw.into(), reports)
}

#[test]
fn heartbeat_encodes_its_details_and_the_next_attempt_decodes_them() {
    let (ctx, reports) = resumed(r#"{"done":41}"#);
    assert_eq!(block_on(resumes(ctx)), Ok(41));
    assert_eq!(*reports.lock().unwrap(), [Payload::from(r#"{"done":42}"#)]);
}

#[test]
fn details_of_another_type_fail_the_attempt_as_bad_input() {
    let failure = block_on(resumes(resumed("[]").0)).unwrap_err();
    assert_eq!(failure.type_name.as_deref(), Some("BadInput"));
}

#[test]
fn heartbeat_of_a_cancelled_attempt_counts_and_fails_with_the_reason() {
    let (ctx, reports) = resumed(r#"{"done":1}"#);
    ctx.cancel("the order is withdrawn");
    let failure = block_on(resumes(ctx)).unwrap_err();
    assert!(failure.is_cancelled() && failure.message.contains("the order is withdrawn"), "{failure}");
    assert_eq!(reports.lock().unwrap().len(), 1);
}

#[activity]
async fn odd_names(input: u64, receiver: u64, ctx: u64, r#type: u64) -> Result<u64, Failure> {
    Ok(input + 10 * receiver + 100 * ctx + 1000 * r#type)
}

#[test]
fn arguments_may_have_any_name() {
    let input = vec!["1".into(), "2".into(), "3".into(), "4".into()];
    assert_eq!(serve(odd_names, "odd_names", RawCtx::detached(), input), Ok("4321".into()));
    let failure = serve(odd_names, "odd_names", RawCtx::detached(), vec!["1".into(); 3]).unwrap_err();
    assert!(failure.message.starts_with("argument `type`: the value cannot be read as `u64`"), "{failure}");
}

#[activity]
async fn parcel(parcel: u64) -> Result<u64, Failure> {
    Ok(parcel + 1)
}

#[workflow]
async fn trip(ctx: Ctx, trip: u64) -> Result<u64, Failure> {
    ctx.call(parcel, trip).await
}

/// `async fn trip(ctx: Ctx, trip: Trip)` reads well, and did not compile.
#[test]
fn argument_may_have_the_name_of_its_function() {
    assert_eq!(serve(parcel, "parcel", RawCtx::detached(), vec!["1".into()]), Ok("2".into()));
    let script = "start = 1\n resolve parcel = 2";
    let expected = dacapo_testkit::expect![[r#"
        turn 0  [] activity parcel
        turn 1  [] complete 2
    "#]];
    crate::kit::check(trip, script, expected);
}

#[derive(Debug, thiserror::Error)]
#[error("the disk is full")]
struct DiskFull(#[source] std::io::Error);

#[derive(Debug, thiserror::Error)]
#[error("no such card")]
struct NoCard;

impl From<NoCard> for Failure {
    fn from(error: NoCard) -> Self {
        Failure::application(error.to_string()).typed("NoCard").non_retryable()
    }
}

#[activity]
async fn any_error() -> Result<(), DiskFull> {
    Err(DiskFull(std::io::Error::other("0 bytes left")))
}

#[activity]
async fn own_conversion() -> Result<(), NoCard> {
    Err(NoCard)
}

#[activity]
async fn with_anyhow() -> anyhow::Result<()> {
    Err(anyhow::anyhow!("inner").context("outer"))
}

#[activity]
async fn question_marks(which: u8) -> Result<(), Failure> {
    match which {
        0 => Err(std::io::Error::other("io"))?,
        1 => Err("text")?,
        2 => Err("owned".to_owned())?,
        3 => Err(Box::<dyn std::error::Error + Send + Sync>::from("boxed"))?,
        4 => drop("x".parse::<u64>()?),
        5 => drop("x".parse::<std::net::IpAddr>().or_fail()?),
        _ => anyhow::Ok(()).or_fail()?,
    }
    Ok(())
}

#[test]
fn errors_of_any_type_become_failures() {
    let fails = |result: Result<Payload, Failure>| result.unwrap_err();
    let ctx = RawCtx::detached;
    assert_eq!(fails(serve(any_error, "any_error", ctx(), vec![])).to_string(), "the disk is full: 0 bytes left");
    let own = fails(serve(own_conversion, "own_conversion", ctx(), vec![]));
    assert_eq!((own.type_name.as_deref(), own.non_retryable), (Some("NoCard"), true));
    assert_eq!(fails(serve(with_anyhow, "with_anyhow", ctx(), vec![])).to_string(), "outer: inner");
    let said: Vec<String> = (0..6).map(|which| question_marks(which).wait().unwrap_err().message).collect();
    assert_eq!(said, ["io", "text", "owned", "boxed", "invalid digit found in string", "invalid IP address syntax"]);
    assert_eq!(question_marks(6).wait(), Ok(()));
}

#[activity]
async fn unencodable() -> Result<std::collections::BTreeMap<(u8, u8), u8>, Failure> {
    Ok(std::collections::BTreeMap::from([((1, 2), 3)]))
}

#[test]
fn a_result_that_json_cannot_hold_is_a_failure() {
    let failure = serve(unencodable, "unencodable", RawCtx::detached(), vec![]).unwrap_err();
    assert_eq!((failure.type_name.as_deref(), failure.non_retryable), (Some("BadOutput"), true));
}

#[workflow]
async fn forgets(_: Ctx, n: u64) -> Result<u64, Failure> {
    double(n).await
}

/// Awaiting an activity in a workflow compiles, so the run must refuse it: the effect would happen again on every replay.
#[test]
fn an_activity_awaited_in_a_workflow_fails_the_activation() {
    crate::kit::check(
        forgets,
        "start = 4",
        dacapo_testkit::expect![[r#"
        failed: workflow code panicked in the root unit, after no call: activity "double" was awaited in a workflow: write `ctx.call(…)` instead
        The run stays open and is played again from the beginning; deploy code that does not panic here, or return an `Err` to fail the run.
    "#]],
    );
}
