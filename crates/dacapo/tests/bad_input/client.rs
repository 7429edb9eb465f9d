//! The calls of a program: opening, serving, starting, talking to runs, looking at them.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;

use dacapo::prelude::*;
use dacapo::{Dacapo, Filter, Handle, IdConflict};
use serde_json::{Value, json};

use crate::setup::{CONSENT, LEVEL, NUDGE, RAISE, Setup, dying, large, long, sample, token, words};

type Said = Pin<Box<dyn Future<Output = String> + Send>>;

struct Row {
    call: &'static str,
    given: &'static str,
    says: &'static str,
    ask: fn(Setup) -> Said,
}

/// A row: the call, what it is given, the words of the error, the call itself.
macro_rules! row {
    ($call:literal, $given:literal, $says:literal, $setup:ident => $ask:expr) => {
        Row { call: $call, given: $given, says: $says, ask: |$setup: Setup| Box::pin(async move { words($ask) }) }
    };
}

/// Cannot be written as JSON.
fn odd_map() -> HashMap<Vec<u8>, u8> {
    HashMap::from([(vec![1], 1)])
}

fn opening() -> Vec<Row> {
    vec![
        row!("Dacapo::connect", "a store in memory", "belongs to the process", _s => Dacapo::connect("memory:").await.map(drop)),
        row!("Dacapo::connect", "a file that is not there", "", _s => Dacapo::connect("sqlite:/nowhere/x.db").await.map(drop)),
        row!("Dacapo::open", "no URL", "names no kind of store", _s => Dacapo::open("").await),
        row!("Dacapo::open", "another database", "no kind of store", _s => Dacapo::open("mysql:x").await),
        row!("Dacapo::open", "what this build lacks", "not part of this build", _s => Dacapo::open("postgres://x").await),
        row!("Dacapo::open", "no file", "names no file", _s => Dacapo::open("sqlite:").await),
        row!("Dacapo::open", "an unknown setting", "unknown setting", _s => Dacapo::open("sqlite:x?colour=red").await),
        row!("Dacapo::open", "a folder that is not there", "out of reach", _s => Dacapo::open("sqlite:/no/where/x.db").await),
        row!("Dacapo::open", "a file that is none", "no Dacapo store", _s => {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), "something else entirely, and rather long".repeat(40)).unwrap();
            Dacapo::open(&format!("sqlite:{}", file.path().display())).await
        }),
        row!("Dacapo::serve", "the same workflow twice", "registered twice", _s =>
            Dacapo::open("memory:").await.unwrap().serve((sample, sample)).await),
        row!("Dacapo::serve", "a read-only store", "reading only", _s => {
            let folder = tempfile::tempdir().unwrap();
            let url = format!("sqlite:{}", folder.path().join("x.db").display());
            Dacapo::open(&url).await.unwrap().serve(sample).await.unwrap().shutdown().await;
            Dacapo::open(&format!("{url}?mode=ro")).await.unwrap().serve(sample).await
        }),
        row!("Dacapo::check_open_runs", "one workflow twice", "sample", _s =>
            Dacapo::open("memory:").await.unwrap().check_open_runs((sample, sample), |_| ()).await),
        row!("Dacapo::settings", "none", "max_concurrent_activities", _s =>
            Dacapo::open("memory:").await.unwrap().settings(|app| app.every_queue(|queue| queue.max_concurrent_activities(0))).serve(sample).await),
        row!("Dacapo::settings", "none", "completions_per_turn", _s =>
            Dacapo::open("memory:").await.unwrap().settings(|app| app.completions_per_turn(0)).serve(sample).await),
        row!("Dacapo::settings", "far too many", "turn_threads", _s =>
            Dacapo::open("memory:").await.unwrap().settings(|app| app.turn_threads(1_000_000)).serve(sample).await),
        row!("Dacapo::settings", "no time", "force_exit_timeout", _s =>
            Dacapo::open("memory:").await.unwrap().settings(|app| app.force_exit_timeout(secs(0))).serve(sample).await),
        row!("Dacapo::settings", "far too many", "cache_size", _s =>
            Dacapo::open("memory:").await.unwrap().settings(|app| app.cache_size(usize::MAX)).serve(sample).await),
        row!("Dacapo::settings", "longer than a year", "workflow_deadlock_timeout", _s =>
            Dacapo::open("memory:").await.unwrap().settings(|app| app.every_queue(|queue| queue.workflow_deadlock_timeout(days(1_000)))).serve(sample).await),
        row!("Dacapo::settings", "longer than a year", "shutdown_grace_period", _s =>
            Dacapo::open("memory:").await.unwrap().settings(|app| app.every_queue(|queue| queue.shutdown_grace_period(days(1_000)))).serve(sample).await),
        row!("Dacapo::settings", "longer than a year", "shutdown_force_timeout", _s =>
            Dacapo::open("memory:").await.unwrap().settings(|app| app.every_queue(|queue| queue.shutdown_force_timeout(days(1_000)))).serve(sample).await),
        row!("Dacapo::settings", "longer than a century", "retention", _s =>
            Dacapo::open("memory:").await.unwrap().settings(|app| app.retention(days(1_000_000))).serve(sample).await),
        row!("Dacapo::settings", "no folder", "state_dir", _s =>
            Dacapo::open("memory:").await.unwrap().settings(|app| app.state_dir("")).serve(sample).await),
        row!("App::import", "no file of histories", "line 1", _s => {
            let app = Dacapo::open("memory:").await.unwrap().serve(sample).await.unwrap();
            app.import(std::io::Cursor::new("hello")).await
        }),
        row!("Runs::back_up", "a store in memory", "does not support backup", _s =>
            Dacapo::open("memory:").await.unwrap().runs().back_up("x").await),
        row!("Runs::export_to_file", "a folder that is not there", "No such file", _s =>
            Dacapo::open("memory:").await.unwrap().runs().export_to_file(&Filter::all(), "no/such/folder").await),
        row!("Runs::export", "a writer that takes nothing", "cannot be written", _s =>
            Dacapo::open("memory:").await.unwrap().runs().export(&Filter::all(), std::io::Cursor::new([0_u8; 3])).await),
        row!("Handle::delete", "an open run", "is open", _s => {
            let app = Dacapo::open("memory:").await.unwrap().serve(sample).await.unwrap();
            app.start(sample, 1).await.unwrap().delete().await
        }),
        row!("Handle::delete", "an unknown run", "there is no run", _s => {
            let app = Dacapo::open("memory:").await.unwrap().serve(sample).await.unwrap();
            app.handle(sample, "absent").delete().await
        }),
        row!("Dacapo::queue", "no name", "a queue", _s =>
            Dacapo::open("memory:").await.unwrap().queue("").serve(sample).await),
        row!("Dacapo::queue", "twice", "\"a\"", _s =>
            Dacapo::open("memory:").await.unwrap().queue("a").queue("a").serve(sample).await),
        row!("Dacapo::settings", "an unknown setting", "max_zombies", _s =>
            Dacapo::open("memory:").await.unwrap().settings(|app| app.every_queue(|queue| queue.set("max_zombies", "1"))).serve(sample).await),
        row!("Dacapo::settings", "an unknown setting", "cash_size", _s =>
            Dacapo::open("memory:").await.unwrap().settings(|app| app.set("cash_size", "1")).serve(sample).await),
        row!("Dacapo::environment", "an unknown setting", "DACAPO_CASH_SIZE", _s =>
            Dacapo::open("memory:").await.unwrap().environment([("DACAPO_CASH_SIZE", "1")]).serve(sample).await),
        row!("Dacapo::effective", "an unknown setting", "did you mean", _s =>
            Dacapo::open("memory:").await.unwrap().environment([("DACAPO_CASH_SIZE", "1")]).effective()),
        row!("Dacapo::settings", "less than an input", "at most 1 are allowed", _s =>
            Dacapo::open("memory:").await.unwrap().settings(|app| app.payload_limit(1)).serve(sample).await.unwrap().start(sample, 12).await),
        row!("Dacapo::settings", "no room at all", "message_limit", _s =>
            Dacapo::open("memory:").await.unwrap().settings(|app| app.message_limit(0)).serve(sample).await),
    ]
}

fn starting() -> Vec<Row> {
    vec![
        row!("Connection::start_raw", "an unknown workflow", "registered are: dying, sample", s => s.app.start_raw("other", []).await),
        row!("Connection::start_raw", "no name", "workflow type is empty", s => s.app.start_raw("", []).await),
        row!("Connection::start_raw", "a large input", "at most 10,000 are allowed", s => s.app.start_raw("sample", [large()]).await),
        row!("Connection::start", "an id in use", "in use by run", s => s.app.start(sample, 1).id("open").await),
        row!("StartCall::id", "no id", "workflow id is empty", s => s.app.start(sample, 1).id("").await),
        row!("StartCall::id", "an endless id", "1,001 bytes long, at most 1,000", s => s.app.start(sample, 1).id(long()).await),
        row!("StartCall::id", "control characters", "control characters", s => s.app.start(sample, 1).id("a\nb").await),
        row!("StartCall::header", "a value that JSON cannot hold", "header \"tenant\": a value of type", s =>
            s.app.start(sample, 1).header("tenant", &odd_map()).await),
        row!("Connection::encode", "a value that JSON cannot hold", "cannot be encoded", s => s.app.encode(&odd_map())),
        row!("Connection::decode", "another type", "cannot be read as `u8`", s =>
            s.app.decode::<u8>(&dacapo::Payload::json("true"))),
        row!("StartCall::queue", "no name", "queue name is empty", s => s.app.start(sample, 1).queue("").await),
        row!("StartCall::id_reuse", "an id that may not be used again", "allows no second use", s =>
            s.app.start(sample, 1).id("closed").id_reuse(IdReuse::RejectDuplicate).await),
        row!("StartCall::id_conflict", "an id in use", "in use by run", s =>
            s.app.start(sample, 1).id("open").id_conflict(IdConflict::Fail).await),
        row!("StartCall::request_id", "no key", "request id is empty", s => s.app.start(sample, 1).request_id("").await),
        row!("StartCall::request_id", "the key of another request", "was used before", s =>
            s.app.start(sample, 6).id("open").request_id("asked").await),
        row!("StartCall::execution_timeout", "zero", "timeout is zero", s =>
            s.app.start(sample, 1).execution_timeout(secs(0)).await),
        row!("StartCall::run_timeout", "zero", "timeout is zero", s => s.app.start(sample, 1).run_timeout(secs(0)).await),
        row!("StartCall::retry", "pauses that shrink", "factor is 0.5", s =>
            s.app.start(sample, 1).retry(Retry { factor: 0.5, ..Retry::exponential() }).await),
        row!("StartCall::memo", "a value that is no JSON", "cannot be encoded", s =>
            s.app.start(sample, 1).memo("map", &odd_map()).await),
        row!("StartCall::memo", "no name", "name of a memo entry is empty", s => s.app.start(sample, 1).memo("", &1).await),
        row!("StartCall::attr", "a number that is not finite", "\"ratio\": NaN is not a finite number", s =>
            s.app.start(sample, 1).attr(Attr::new("ratio"), f64::NAN).await),
        row!("StartCall::attr", "a long keyword", "is 300 bytes long, at most 255 are allowed", s =>
            s.app.start(sample, 1).attr(Attr::new("city"), "x".repeat(300)).await),
        row!("StartCall::attr", "a large number", "18446744073709551615 is too large", s =>
            s.app.start(sample, 1).attr(Attr::new("size"), u64::MAX).await),
        row!("StartCall::pins", "unknown rules of play", "semantics version 99", s => {
            let pins = dacapo::Pins { semantics: 99, ..Default::default() };
            s.app.start(sample, 1).pins(pins).await
        }),
    ]
}

fn talking() -> Vec<Row> {
    vec![
        row!("SignalCall::header", "a value that JSON cannot hold", "header \"tenant\": a value of type", s =>
            s.open.signal(NUDGE, 1).header("tenant", &odd_map()).await),
        row!("UpdateCall::header", "a value that JSON cannot hold", "header \"tenant\": a value of type", s =>
            s.open.update(RAISE, 1).header("tenant", &odd_map()).await),
        row!("Handle::signal", "a closed run", "is completed", s => s.closed.signal(NUDGE, 1).await),
        row!("Handle::signal", "an absent run", "no run of workflow id \"absent\"", s => s.absent.signal(NUDGE, 1).await),
        row!("SignalCall::request_id", "no key", "request id is empty", s => s.open.signal(NUDGE, 1).request_id("").await),
        row!("Handle::signal_raw", "no name", "signal name is empty", s => s.open.signal_raw("", json!(1)).await),
        row!("Handle::signal_raw", "a large value", "at most 10,000 are allowed", s => s.open.signal_raw("x", large()).await),
        row!("Handle::query", "an absent run", "no run of", s => s.absent.query(LEVEL, ()).await),
        row!("Handle::query_raw", "an unknown query", "known now: level", s => s.open.query_raw("x", json!(null)).await),
        row!("Handle::query_raw", "another type", "cannot be read as", s => s.open.query_raw("level", json!("high")).await),
        row!("Handle::query_raw", "no name", "query name is empty", s => s.open.query_raw("", json!(null)).await),
        row!("Handle::update", "a closed run", "is completed", s => s.closed.update(RAISE, 1).await),
        row!("Handle::update", "an absent run", "no run of", s => s.absent.update(RAISE, 1).await),
        row!("Handle::update_raw", "an unknown update", "known now: raise", s => s.open.update_raw("x", json!(1)).await),
        row!("Handle::update_raw", "another type", "rejected", s => s.open.update_raw("raise", json!("much")).await),
        row!("UpdateCall::request_id", "no id", "request id is empty", s => s.open.update(RAISE, 1).request_id("").await),
        row!("UpdateCall::accepted", "an unknown update", "rejected", s => s.open.update_raw("x", json!(1)).accepted().await.map(drop)),
        row!("Handle::resolve", "an absent run", "no run of", s => s.absent.resolve(CONSENT, true).await),
        row!("Handle::resolve", "another promise", "open now: consent", s => s.open.resolve(Promise::<u8>::new("x"), 1).await),
        row!("Handle::resolve_raw", "no name", "promise name is empty", s => s.open.resolve_raw("", json!(1)).await),
        row!("Handle::resolve_raw", "a large value", "at most 10,000 are allowed", s => s.open.resolve_raw("consent", large()).await),
        row!("Handle::reject", "a closed run", "is completed", s => s.closed.reject(CONSENT, Failure::application("no")).await),
        row!("Handle::reject_raw", "another promise", "no open promise", s => s.open.reject_raw("x", Failure::application("no")).await),
        row!("Handle::complete_activity", "an activity that is not pending", "has no activity", s =>
            s.open.complete_activity("x", &1).await),
        row!("Handle::complete_activity", "a large result", "at most 10,000 are allowed", s =>
            s.open.complete_activity("x", &large()).await),
        row!("Handle::fail_activity", "no id", "activity id is empty", s =>
            s.open.fail_activity("", Failure::application("no")).await),
        row!("Connection::complete", "a text that is no token", "no completion token", s => s.app.complete("x", &1).await),
        row!("Connection::complete", "a damaged token", "damaged", s => s.app.complete("dcpt100", &1).await),
        row!("Connection::complete", "the token of an absent run", "no run of", s => s.app.complete(&token("absent"), &1).await),
        row!("Connection::complete", "a token of an activity that is over", "has no activity", s =>
            s.app.complete(&s.token().await, &1).await),
        row!("Connection::complete", "a large result", "at most 10,000 are allowed", s =>
            s.app.complete(&s.token().await, &large()).await),
        row!("Connection::fail", "a text that is no token", "no completion token", s =>
            s.app.fail("", Failure::application("no")).await),
        row!("Connection::heartbeat", "the token of an absent run", "no run of", s => s.app.heartbeat(&token("absent"), &1).await),
        row!("Connection::heartbeat", "a large report", "at most 10,000 are allowed", s =>
            s.app.heartbeat(&s.token().await, &large()).await),
        row!("Handle::release", "an absent run", "no run of", s => s.absent.release().await),
        row!("Handle::release", "a run without anything in quarantine", "quarantined", s => s.open.release().await),
        row!("Handle::cancel", "an absent run", "no run of", s => s.absent.cancel("").await),
        row!("Handle::cancel", "a closed run", "is completed", s => s.closed.cancel("").await),
        row!("Handle::terminate", "an absent run", "no run of", s => s.absent.terminate("").await),
        row!("Handle::terminate", "a closed run", "is completed", s => s.closed.terminate("").await),
        row!("Handle::reset", "the turn that starts it", "choose 1 to 1", s => s.open.reset(0, "").await),
        row!("Handle::reset", "a turn that is not there", "choose 1 to 1", s => s.open.reset(9, "").await),
        row!("Handle::reset", "an absent run", "no run of", s => s.absent.reset(1, "").await),
        row!("Handle::result", "an absent run", "no run of", s => s.absent.result().await),
        row!("Handle::result_or_stuck", "an absent run", "no run of", s => s.absent.result_or_stuck().await),
        row!("Handle::result", "another type", "cannot be read as", s => s.app.handle_of::<String>("closed").result().await),
        row!("Handle::with_run_id", "another run", "with run id \"x\"", s => s.open.clone().with_run_id("x").describe().await),
        row!("Handle::describe", "an absent run", "no run of", s => s.absent.describe().await),
        row!("Handle::inspect", "an absent run", "no run of", s => s.absent.inspect().await),
        row!("Handle::history", "an absent run", "no run of", s => s.absent.history().await),
        row!("Handle::history_page", "an absent run", "no run of", s => s.absent.history_page(None, 1).await),
        row!("Handle::history_page", "no events", "a page of 0 events", s => s.open.history_page(None, 0).await),
        row!("Handle::update_handle", "an update that was never sent", "no update with request id \"x\"", s =>
            s.open.update_handle(RAISE, "x").answer().await),
        row!("Handle::update_handle", "no id", "request id of the update is empty", s => s.open.update_handle(RAISE, "").answer().await),
        row!("Handle::transcript", "an absent run", "no run of", s => s.absent.transcript().await),
        row!("Handle::published", "an absent run", "no run of", s => s.absent.published::<u8>().await),
        row!("Connection::handle", "an absent run", "no run of", s => s.app.handle(sample, "absent").describe().await),
        row!("Connection::handle_raw", "an absent run", "no run of", s => s.app.handle_raw("absent").describe().await),
        row!("Connection::handle_of", "an absent run", "no run of", s => s.app.handle_of::<Value>("absent").describe().await),
    ]
}

fn looking() -> Vec<Row> {
    vec![
        row!("Runs::list", "an endless page", "never ends", s => s.app.runs().list(&Filter::all(), 0).await),
        row!("Filter::search", "a word without quotes", "at column 5", _s => async { Filter::all().search("a = ada") }.await),
        row!("Runs::list_from", "an endless page", "never ends", s =>
            s.app.runs().list_from(&Filter::all(), dacapo::Cursor("1".into()), 0).await),
        row!("Runs::list_from", "a cursor of another backend", "invalid cursor", s =>
            s.app.runs().list_from(&Filter::all(), dacapo::Cursor("elsewhere".into()), 1).await),
        row!("Runs::describe", "an absent run", "no run of", s => s.app.runs().describe("absent").await),
        row!("Runs::transcript", "an absent run", "no run of", s => s.app.runs().transcript("absent").await),
    ]
}

/// Calls that cannot be given anything bad, and why.
const NOTHING_BAD: &[(&str, &str)] = &[
    ("Dacapo::over_store", "a store is a store"),
    ("Dacapo::runs", "takes nothing"),
    ("Dacapo::double_play", "on or off"),
    ("Dacapo::control_socket", "on or off"),
    ("Dacapo::build", "any name is as good as another"),
    ("Dacapo::own_policy", "what a policy does wrong fails the activation, shown by the tests of the core"),
    ("App::over_engine", "an engine is an engine"),
    ("Connection::with_converter", "what a converter cannot do is a failure of the value: tests/layers/converter.rs"),
    (
        "Connection::with_interceptor",
        "what an interceptor refuses is an error of the call: tests/layers/interceptors.rs",
    ),
    ("Handle::latest", "takes nothing"),
    ("Dacapo::converter", "what a converter cannot do is a failure of the value: tests/layers/converter.rs"),
    ("Dacapo::redact", "both values are allowed"),
    ("Dacapo::intercept", "what an interceptor refuses is an error of the call: tests/layers/interceptors.rs"),
    ("UpdateCall::header_payload", "headers are opaque"),
    ("Connection::over", "a client is a client"),
    ("Runs::stuck_runs", "takes nothing"),
    ("Connection::nodes", "takes nothing"),
    ("Connection::capabilities", "takes nothing"),
    ("Connection::client", "takes nothing"),
    ("Connection::runs", "takes nothing"),
    ("App::runs_in_memory", "takes nothing"),
    ("App::turn_threads", "takes nothing"),
    ("Runs::verify", "the closure that gets the progress cannot be wrong"),
    ("App::check_open_runs", "the closure that gets the progress cannot be wrong"),
    ("App::settings", "takes nothing"),
    ("App::health", "takes nothing"),
    ("App::evict_idle", "takes nothing"),
    ("App::shutdown", "takes nothing"),
    ("App::stop", "takes nothing"),
    ("App::serve_until_signalled", "takes nothing"),
    ("StartCall::delay", "it may begin at once, or at the end of time"),
    ("SignalCall::header_payload", "headers are opaque"),
    ("StartCall::header_payload", "headers are opaque"),
    ("Handle::workflow_id", "takes nothing"),
    ("Handle::run_id", "takes nothing"),
    ("Handle::is_new", "takes nothing"),
    ("UpdateHandle::id", "takes nothing"),
    ("UpdateHandle::answer", "takes nothing"),
    ("Filter::all", "takes nothing"),
    ("Filter::open", "takes nothing"),
    ("Filter::stuck", "takes nothing"),
    ("Filter::status", "every status can be asked for"),
    ("Filter::workflow", "an unused name matches no run"),
    ("Filter::workflow_id", "an unused id matches no run"),
    ("Filter::started_from", "any moment will do"),
    ("Filter::started_before", "any moment will do"),
    ("Runs::stuck_causes", "takes nothing"),
    ("Runs::count", "no match is counted as 0"),
    ("Runs::counts", "no match is no group"),
];

#[tokio::test(flavor = "multi_thread")]
async fn invalid_argument_of_every_client_call_is_refused_with_a_reason_and_changes_nothing() {
    let setup = Setup::new().await;
    let before = setup.all().await;
    for row in [opening(), starting(), talking(), looking()].into_iter().flatten() {
        let Row { call, given, says, ask } = row;
        let said = ask(setup.clone()).await;
        assert!(said.contains(says), "{call}, given {given}, says: {said}");
        assert_eq!(setup.all().await, before, "{call}, given {given}, changed something");
    }
    for (call, why) in NOTHING_BAD {
        assert!(!why.is_empty(), "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn result_of_a_failed_run_is_an_error_with_its_status_and_failure() {
    let setup = Setup::new().await;
    let failed: Handle<()> = setup.app.start(dying, ()).await.unwrap();
    assert!(words(failed.result().await).ends_with("ended as failed: it was dying"));
    assert_eq!(words(setup.open.update(RAISE, 0).await), "the update failed: by nothing at all");
    setup.open.terminate("enough").await.unwrap();
    assert_eq!(words(setup.open.result().await), "run \"open\" ended as terminated: enough");
}
