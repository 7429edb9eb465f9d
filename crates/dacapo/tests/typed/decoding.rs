//! Payloads that cannot be decoded: a recorded one fails the activation, so that a fixed deploy goes on with the run; a
//! message fails its sender.

use std::collections::BTreeMap;

use dacapo::Query;
use dacapo::core::{PayloadData, PayloadReference};
use dacapo::prelude::*;
use dacapo::{Catalog, Payload, decode, encode};
use dacapo_testkit::expect;
use serde::{Deserialize, Serialize};

use crate::kit::{check, check_refused, check_replay};

const WORD: Promise<String> = Promise::new("word");
const OLD: Key<Vec<u8>> = Key::new("k");
const NEW: Key<String> = Key::new("k");
const GO: Signal<u64> = Signal::new("go");

#[activity]
async fn measure() -> Result<u64, Failure> {
    Ok(1)
}

#[workflow]
async fn careful(ctx: Ctx, what: String) -> Result<String, Failure> {
    let text = match what.as_str() {
        "activity" => ctx.call(measure, ()).await?.to_string(),
        "local" => ctx.call_local(measure, ()).await?.to_string(),
        "child" => ctx.child(careful, String::new()).await?,
        "run" => ctx.side_effect("roll", || async { Ok(5_u64) }).await?.to_string(),
        "promise" => ctx.promise(WORD).await?,
        "key" => {
            ctx.keys().set(OLD, &vec![1]);
            ctx.keys().get(NEW).unwrap_or_default()
        }
        _ => "nothing".to_owned(),
    };
    Ok(text)
}

/// S4-55
#[test]
fn result_of_another_type_fails_the_activation_and_corrected_code_goes_on() {
    check_refused(
        careful,
        r#"start = "activity"
           resolve measure = "ten"
           resolve measure = 10"#,
        expect![[r#"
            turn 0  [] activity measure
            failed: the result of activity "measure": the value cannot be read as `u64`: invalid type: string "ten", expected u64 at line 1 column 5; it is `"ten"`
            The run stays open; it goes on once the code can read what was recorded.
            in the root unit, at crates/dacapo/tests/typed/decoding.rs
            turn 1  [] complete "10"
        "#]],
    );
}

/// S4-55
#[test]
fn no_record_of_another_type_becomes_a_value() {
    check_refused(
        careful,
        r#"start = "local"
           resolve measure = [1]"#,
        expect![[r#"
            turn 0  [] local activity measure
            failed: the result of local activity "measure": the value cannot be read as `u64`: invalid type: sequence, expected u64 at line 1 column 0; it is `[1]`
            The run stays open; it goes on once the code can read what was recorded.
            in the root unit, at crates/dacapo/tests/typed/decoding.rs
        "#]],
    );
    check_refused(
        careful,
        r#"start = "child"
           started careful = r
           resolve careful = 5"#,
        expect![[r#"
            turn 0  [] child careful
            turn 1
            failed: the result of child "careful": the value cannot be read as `String`: invalid type: integer `5`, expected a string at line 1 column 1; it is `5`
            The run stays open; it goes on once the code can read what was recorded.
            in the root unit, at crates/dacapo/tests/typed/decoding.rs
        "#]],
    );
    check_refused(
        careful,
        r#"start = "run"
           resolve roll"#,
        expect![[r#"
            turn 0  [] side effect roll
            failed: the result of side effect "roll": the value cannot be read as `u64`: invalid type: null, expected u64 at line 1 column 4; it is nothing
            The run stays open; it goes on once the code can read what was recorded.
            in the root unit, at crates/dacapo/tests/typed/decoding.rs
        "#]],
    );
    check_refused(
        careful,
        r#"start = "promise"
           resolve word = false"#,
        expect![[r#"
            turn 0  [] promise word
            failed: the promise "word": the value cannot be read as `String`: invalid type: boolean `false`, expected a string at line 1 column 5; it is `false`
            The run stays open; it goes on once the code can read what was recorded.
            in the root unit, at crates/dacapo/tests/typed/decoding.rs
        "#]],
    );
    check_refused(
        careful,
        r#"start = "key""#,
        expect![[r#"
            failed: the durable key "k": the value cannot be read as `String`: invalid type: sequence, expected a string at line 1 column 0; it is `[1]`
            The run stays open; it goes on once the code can read what was recorded.
            in the root unit, at crates/dacapo/tests/typed/decoding.rs
        "#]],
    );
}

/// S4-55
#[test]
fn an_input_of_another_type_fails_the_activation() {
    check_refused(
        careful,
        r#"start = {"what":1}"#,
        expect![[r#"
            failed: the input of workflow "careful": argument `what`: the value cannot be read as `String`: invalid type: map, expected a string at line 1 column 0; it is `{"what":1}`
            The run stays open; it goes on once the code can read what was recorded. If what was sent is wrong, terminate the run, and start it again with a right input.
            in the root unit, at crates/dacapo/tests/typed/decoding.rs
        "#]],
    );
}

#[workflow]
async fn patient(ctx: Ctx) -> Result<String, Failure> {
    let failure = ctx.next_signal(GO).await.unwrap_err();
    assert_eq!(failure.type_name.as_deref(), Some("BadInput"));
    let tried = ctx.try_signal(GO).unwrap_err();
    assert_eq!(tried.type_name.as_deref(), Some("BadInput"));
    Ok(failure.message)
}

#[test]
fn a_signal_of_another_type_ends_the_wait_with_a_failure() {
    check(
        patient,
        r#"start
           signal go = "now", signal go = null"#,
        expect![[r#"
            turn 0
            turn 1  [] complete "signal \"go\": the value cannot be read as `u64`: invalid type: string \"now\", expected u64 at line 1 column 5; it is `\"now\"`; send a value of that type"
        "#]],
    );
}

#[workflow]
async fn unencodable(ctx: Ctx) -> Result<(), Failure> {
    ctx.publish(&BTreeMap::from([((1, 2), 3)]));
    Ok(())
}

#[test]
fn a_value_that_json_cannot_hold_fails_the_activation() {
    check_refused(
        unencodable,
        "start",
        expect![[r#"
            failed: a value of type `BTreeMap<(i32, i32), i32>` cannot be encoded as JSON: key must be a string; use a type that JSON can hold
            in the root unit, at crates/dacapo/tests/typed/decoding.rs
        "#]],
    );
}

#[workflow]
async fn asked(ctx: Ctx) -> Result<(), Failure> {
    ctx.keys().set(OLD, &vec![1]);
    let inner = ctx.clone();
    ctx.on_query(Query::new("look"), move |()| Ok(inner.keys().get(NEW)));
    ctx.sleep(secs(1)).await?;
    Ok(())
}

#[test]
fn query_that_cannot_read_a_durable_key_fails_alone() {
    check_refused(
        asked,
        "start
         query look
         fire",
        expect![[r#"
            turn 0  [] state k = [1]  [] timer 1s
            no answer: the handler of query "look" panicked: the durable key "k": the value cannot be read as `String`: invalid type: sequence, expected a string at line 1 column 0; it is `[1]`
            The run stays open; it goes on once the code can read what was recorded.
            turn 1  [] complete
        "#]],
    );
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Pair {
    a: u64,
    #[serde(default)]
    b: Option<String>,
}

#[test]
fn empty_payload_decodes_as_null() {
    for nothing in [encode(&()), encode(&None::<u64>)] {
        assert_eq!(nothing, Ok(Payload::empty()));
    }
    for nothing in [Payload::empty(), Payload::from("null"), Payload::from("")] {
        assert_eq!(decode::<()>(&nothing), Ok(()));
        assert_eq!(decode::<Option<u64>>(&nothing), Ok(None));
    }
    assert_eq!(decode::<Pair>(&Payload::from(r#"{"a":1}"#)), Ok(Pair { a: 1, b: None }));
    let failure = decode::<Pair>(&Payload::from("[]")).unwrap_err();
    assert!(failure.non_retryable);
    assert!(failure.message.starts_with("the value cannot be read as `Pair`"), "{failure}");
    let long = decode::<u8>(&encode(&"x".repeat(1000)).unwrap()).unwrap_err();
    assert!(long.message.ends_with("…` (1002 bytes)"), "{long}");
}

#[test]
fn payload_that_is_kept_elsewhere_is_a_failure_that_names_the_place() {
    let reference = PayloadReference {
        store: "s3://blobs".into(),
        key: "ab/12".into(),
        size: 5_000_000,
        digest: "sha-256:00ff".into(),
    };
    let payload = Payload { data: PayloadData::Reference(Box::new(reference)), ..Payload::json("") };
    let failure = decode::<u64>(&payload).unwrap_err();
    assert_eq!(failure.type_name.as_deref(), Some(dacapo::json::EXTERNAL_PAYLOAD));
    let words = "payload is kept in \"s3://blobs\" under key \"ab/12\" (5000000 bytes, digest sha-256:00ff): this build reads inline";
    assert!(failure.non_retryable && failure.message.starts_with(words), "{failure}");
}

#[workflow]
async fn two(ctx: Ctx, a: u64, b: Option<u64>) -> Result<u64, Failure> {
    let _ = ctx;
    Ok(a + b.unwrap_or(0))
}

#[test]
fn missing_argument_is_null_and_an_extra_one_is_refused() {
    type Two = <fn(Ctx, u64, Option<u64>) -> dacapo::WorkflowFuture<__two> as dacapo::WorkflowFn<(
        Ctx,
        u64,
        Option<u64>,
    )>>::Workflow;
    use dacapo::WorkflowType;
    assert_eq!(Two::decode(vec!["1".into()], &dacapo::Converter::json()), Ok((1, None)));
    assert_eq!(Two::decode(vec!["1".into(), "2".into(), "null".into()], &dacapo::Converter::json()), Ok((1, Some(2))));
    let failure = Two::decode(vec!["1".into(), "2".into(), "3".into()], &dacapo::Converter::json()).unwrap_err();
    assert_eq!(failure.message, "3 arguments were given, and 2 are taken: give as many as the function takes");
    check(
        two,
        "start = 4",
        expect![[r#"
        turn 0  [] complete 4
    "#]],
    );
    assert!(Catalog::of(two).is_ok());
}

#[workflow(name = "asks")]
async fn asks_numbers(ctx: Ctx) -> Result<(), Failure> {
    ctx.on_update(Update::<u64, u64>::new("ask"), |_| Ok(()), |n| async move { Ok(n) });
    Ok(ctx.sleep(secs(1)).await?)
}

#[workflow(name = "asks")]
async fn asks_words(ctx: Ctx) -> Result<(), Failure> {
    ctx.on_update(Update::<String, String>::new("ask"), |_| Ok(()), |word| async move { Ok(word) });
    Ok(ctx.sleep(secs(1)).await?)
}

#[test]
fn an_update_that_was_accepted_and_cannot_be_read_any_more_fails_the_activation() {
    check_replay(
        asks_numbers,
        "start
         update ask u = 5",
        asks_words,
        expect![[r#"
            turn 0  [] timer 1s
            failed: the accepted update "ask": the value cannot be read as `String`: invalid type: integer `5`, expected a string at line 1 column 1; it is `5`
            The run stays open; it goes on once the code can read what was recorded.
            in turn 1, recorded by build kit, unit [h0], at crates/dacapo/tests/typed/decoding.rs
        "#]],
    );
}
