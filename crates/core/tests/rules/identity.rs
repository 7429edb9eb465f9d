//! Identity: every field of every command, and what replay makes of a change in it.
//!
//! The table is the record itself: a transcript with one command of each kind, changed field by field. A field that is
//! added to a command without a row here fails the last test.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::kit::*;

/// What a change of a field comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// The field decides the command's meaning.
    Fails,
    /// The recorded value holds, and people are told.
    Warns,
    /// The comparison ignores it.
    Passes,
}
use Change::{Fails, Passes, Warns};

/// One command of each kind that a workflow can decide without ending, with every option set.
async fn everything(ctx: Ctx, _: Payload) -> Done {
    let retry = Retry { non_retryable: vec!["Fatal".into()], ..Retry::exponential() };
    let activity = ctx
        .activity("A", "input")
        .queue("other")
        .retry(retry.clone())
        .schedule_to_close(secs(1))
        .schedule_to_start(secs(2))
        .start_to_close(secs(3))
        .heartbeat(secs(4))
        .cancel_type(CancelType::Abandon)
        .priority(Priority { key: 3, fairness_key: Some("tenant".into()), fairness_weight: Some(2.0) })
        .header("trace", "1")
        .summary("what it is for");
    let local = ctx
        .local_activity("L", "input")
        .retry(retry.clone())
        .schedule_to_close(secs(1))
        .start_to_close(secs(3))
        .local_retry_threshold(secs(9))
        .cancel_type(CancelType::Abandon)
        .summary("what it is for");
    let run = ctx.side_effect("R", || async { nothing() }).retry(retry.clone()).start_to_close(secs(3)).summary("for");
    let timer = ctx.sleep(secs(5)).summary("what it is for");
    let child = ctx.child("C", "input").with(|child| {
        child.namespace = Some("space".into());
        child.workflow_id = "child-1".into();
        child.queue = Some("other".into());
        child.execution_timeout = Some(secs(1));
        child.run_timeout = Some(secs(2));
        child.task_timeout = Some(secs(3));
        child.parent_close = ParentClose::RequestCancel;
        child.id_reuse = IdReuse::RejectDuplicate;
        child.retry = Some(retry.clone());
        child.cron = Some("* * * * *".into());
        child.headers.insert("trace".into(), "1".into());
        child.memo.insert("note".into(), "1".into());
        child.search_attributes.insert("city".into(), "Ulm".into());
        child.cancel = CancelType::WaitRequested;
        child.priority.key = 3;
        child.summary = Some("what it is for".into());
    });
    let target =
        Target::Workflow { namespace: Some("space".into()), workflow_id: "other".into(), run_id: Some("run-9".into()) };
    let signal = ctx.signal_external(target.clone(), "S", "input").header("trace", "1");
    let cancel = ctx.cancel_external(Target::Child { workflow_id: "child-1".into() }, "enough");
    let nexus = ctx.nexus("endpoint", "service", "operation", "input").with(|call| {
        call.schedule_to_close = Some(secs(1));
        call.schedule_to_start = Some(secs(2));
        call.start_to_close = Some(secs(3));
        call.headers.insert("trace".into(), "1".into());
        call.cancel = CancelType::Abandon;
        call.summary = Some("what it is for".into());
    });
    let promise = ctx.promise("P");
    drop(ctx.activity("dropped", ""));
    ctx.patched("patch");
    ctx.set_attrs([("city".into(), Some("Ulm".into()))]);
    ctx.set_memo([("note".into(), Some("text".into()))]);
    ctx.set_state("key", "value");
    ctx.on_update("U", |_| Ok(()), |_| async { Ok("answer".into()) });
    ctx.on_update("V", |_| Ok(()), |_| async { Err(Failure::application("no")) });
    ctx.next_signal("end").await?;
    (timer, signal, nexus, activity, local).detach();
    drop((run, child, cancel, promise));
    nothing()
}

trait Detach {
    fn detach(self);
}

impl Detach for (Timer, SignalExternalCall, Nexus, Activity, LocalActivity) {
    fn detach(self) {
        let (timer, signal, nexus, activity, local) = self;
        timer.detach();
        signal.detach();
        nexus.detach();
        activity.detach();
        local.detach();
    }
}

async fn completes(_: Ctx, _: Payload) -> Done {
    Ok("result".into())
}

async fn fails(_: Ctx, _: Payload) -> Done {
    let mut failure = Failure::application("no").typed("Fatal").non_retryable();
    failure = failure.caused_by(Failure::application("deeper"));
    failure.details = vec!["detail".into()];
    failure.origin = Some(Box::new(Origin { source: "program".into(), stack: "here".into() }));
    Err(failure)
}

async fn cancels(ctx: Ctx, _: Payload) -> Done {
    ctx.activity("A", "").await
}

async fn continues(ctx: Ctx, _: Payload) -> Done {
    let mut next = ContinueAsNew { workflow: "next".into(), queue: Some("other".into()), ..ContinueAsNew::default() };
    next.input = vec!["input".into()];
    next.run_timeout = Some(secs(1));
    next.task_timeout = Some(secs(2));
    next.memo = Some(BTreeMap::from([("note".into(), "1".into())]));
    next.headers.insert("trace".into(), "1".into());
    next.search_attributes = Some(BTreeMap::from([("city".into(), "Ulm".into())]));
    next.retry = Some(Retry::exponential());
    next.start_delay = Some(secs(3));
    Err(ctx.continue_as_new(next))
}

/// Every field of every command, by the names under which it is recorded.
const TABLE: &[(&str, &[(&str, Change)])] = &[
    (
        "activity",
        &[
            ("seq", Fails),
            ("id", Fails),
            ("activity", Fails),
            ("input", Fails),
            ("headers", Passes),
            ("queue", Warns),
            ("timeouts", Warns),
            ("retry", Warns),
            ("cancel", Warns),
            ("priority", Warns),
            ("summary", Warns),
        ],
    ),
    (
        "local_activity",
        &[
            ("seq", Fails),
            ("id", Fails),
            ("activity", Fails),
            ("input", Fails),
            ("headers", Passes),
            ("timeouts", Warns),
            ("retry", Warns),
            ("local_retry_threshold", Warns),
            ("cancel", Warns),
            ("attempt", Fails),
            ("first_scheduled", Passes),
            ("summary", Warns),
        ],
    ),
    (
        "side_effect",
        &[("seq", Fails), ("id", Fails), ("name", Fails), ("retry", Warns), ("timeouts", Warns), ("summary", Warns)],
    ),
    ("timer", &[("seq", Fails), ("duration", Fails), ("summary", Warns)]),
    (
        "child",
        &[
            ("seq", Fails),
            ("namespace", Fails),
            ("workflow_id", Fails),
            ("workflow", Fails),
            ("queue", Warns),
            ("input", Fails),
            ("execution_timeout", Warns),
            ("run_timeout", Warns),
            ("task_timeout", Warns),
            ("parent_close", Warns),
            ("id_reuse", Warns),
            ("retry", Warns),
            ("cron", Warns),
            ("headers", Passes),
            ("memo", Warns),
            ("search_attributes", Warns),
            ("cancel", Warns),
            ("priority", Warns),
            ("summary", Warns),
        ],
    ),
    ("signal_external", &[("seq", Fails), ("target", Fails), ("signal", Fails), ("input", Fails), ("headers", Passes)]),
    ("cancel_external", &[("seq", Fails), ("target", Fails), ("reason", Warns)]),
    (
        "nexus",
        &[
            ("seq", Fails),
            ("endpoint", Fails),
            ("service", Fails),
            ("operation", Fails),
            ("input", Fails),
            ("schedule_to_close", Warns),
            ("schedule_to_start", Warns),
            ("start_to_close", Warns),
            ("headers", Passes),
            ("cancel", Warns),
            ("summary", Warns),
        ],
    ),
    ("promise", &[("seq", Fails), ("id", Fails), ("name", Fails)]),
    ("cancel", &[("seq", Fails), ("operation", Fails), ("reason", Warns)]),
    ("patch", &[("id", Fails), ("deprecated", Passes)]),
    ("search_attributes", &[("city", Fails)]),
    ("memo", &[("note", Fails)]),
    ("state", &[("key", Fails), ("value", Fails)]),
    ("accept_update", &[("update", Fails)]),
    ("complete_update", &[("update", Fails), ("outcome", Fails)]),
    ("complete", &[("result", Fails)]),
    ("fail", &[("failure", Fails)]),
    ("cancel_run", &[("failure", Fails)]),
    (
        "continue_as_new",
        &[
            ("workflow", Fails),
            ("queue", Warns),
            ("input", Fails),
            ("run_timeout", Warns),
            ("task_timeout", Warns),
            ("memo", Warns),
            ("headers", Passes),
            ("search_attributes", Warns),
            ("retry", Warns),
            ("start_delay", Warns),
        ],
    ),
];

/// Fields of a failure that say where it was seen and not what it is.
const OF_A_FAILURE: &[(&str, Change)] = &[
    ("kind", Fails),
    ("message", Fails),
    ("type_name", Fails),
    ("non_retryable", Fails),
    ("details", Fails),
    ("cause", Fails),
    ("origin", Passes),
];

fn transcripts() -> Vec<(Workflow, Transcript)> {
    let record = |workflow: Workflow, script: &str| {
        let mut play = Player::new(workflow.clone(), Pins::default(), Mode::Whole);
        play.play(script);
        assert!(!play.printed.contains("failed: "), "{}", play.printed);
        (workflow, play.transcript.clone())
    };
    vec![
        record(workflow(everything), "start\nupdate U u1\nupdate V u2"),
        record(workflow(completes), "start"),
        record(workflow(fails), "start"),
        record(workflow(cancels), "start\ncancel: enough"),
        record(workflow(continues), "start"),
    ]
}

/// Something else of the same shape.
fn changed(value: &Value) -> Value {
    match value {
        Value::Null => unreachable!("absent fields are filled by name"),
        Value::Bool(flag) => (!flag).into(),
        Value::Number(number) if number.is_f64() => (number.as_f64().unwrap() + 1.0).into(),
        Value::Number(number) => (number.as_u64().unwrap() + 1).into(),
        Value::String(text) => match text.as_str() {
            "try_cancel" | "abandon" | "wait_requested" => "wait_completed".into(),
            "request_cancel" => "terminate".into(),
            "reject_duplicate" => "allow_duplicate".into(),
            "application" => "cancelled".into(),
            "cancelled" => "application".into(),
            "activity" => "timer".into(),
            text if text.len() == 36 => text.replace(|c: char| c.is_ascii_digit(), "f").into(),
            text if text.strip_suffix('s').is_some_and(|number| number.parse::<f64>().is_ok()) => "77s".into(),
            text => format!("{text}!").into(),
        },
        Value::Array(items) => items.iter().map(changed).collect(),
        Value::Object(fields) => {
            let last = fields.len() - 1;
            // One leaf is enough, and some leaves, such as a kind of encoding, would no longer be read.
            let change = |(place, (name, value)): (usize, (&String, &Value))| {
                (name.clone(), if place == last { changed(value) } else { value.clone() })
            };
            Value::Object(fields.iter().enumerate().map(change).collect())
        }
    }
}

/// Changes one field of one recorded command.
fn mutated(transcript: &Transcript, turn: usize, position: usize, path: &[&str]) -> Option<Transcript> {
    let kind = &transcript.turns[turn].commands[position].kind;
    let mut json = serde_json::to_value(kind).unwrap();
    let mut field = &mut json;
    for name in path {
        field = field.as_object_mut()?.entry(*name).or_insert(Value::Null);
    }
    *field = match (field.clone(), path.last()) {
        (Value::Null, Some(&"headers")) => serde_json::json!({"trace": "1"}),
        (Value::Null, Some(&"first_scheduled")) => 5.into(),
        (Value::Null, _) => "other".into(),
        (value, _) => changed(&value),
    };
    let kind: CommandKind =
        serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{path:?}: {error}: {json}"));
    let mut transcript = transcript.clone();
    assert_ne!(transcript.turns[turn].commands[position].kind, kind, "{path:?} was changed");
    transcript.turns[turn].commands[position].kind = kind;
    Some(transcript)
}

/// What replaying a transcript comes to: the fields of the first report, or of all warnings.
fn replayed(workflow: &Workflow, transcript: &Transcript) -> (Change, Vec<String>) {
    let options = RunOptions { double_play: false, ..RunOptions::default() };
    let mut run = Run::new(workflow.clone(), options).unwrap();
    let mut fields = Vec::new();
    for record in &transcript.turns {
        match run.activate(Activation::Turn(record.clone().into_turn())) {
            Completion::Turn(done) => fields.extend(done.warnings.iter().flat_map(|warning| match warning {
                Warning::Tuning { fields, .. } => fields.iter().map(ToString::to_string).collect::<Vec<_>>(),
                other => panic!("{other}"),
            })),
            Completion::Failed(error) => match *error {
                ActivationError::Nondeterminism(report) => {
                    let Mismatch::Changed { differences, .. } = report.mismatch else { panic!("{report:?}") };
                    return (Fails, differences.iter().map(|d| d.field().to_owned()).collect());
                }
                other => panic!("{other}"),
            },
            other => panic!("{other:?}"),
        }
    }
    (if fields.is_empty() { Passes } else { Warns }, fields)
}

/// Where in the transcripts a kind of command stands.
fn places(kind: &str) -> Vec<(Workflow, Transcript, usize, usize)> {
    let mut places = Vec::new();
    for (workflow, transcript) in transcripts() {
        for (turn, record) in transcript.turns.iter().enumerate() {
            for (position, command) in record.commands.iter().enumerate() {
                if serde_json::to_value(&command.kind).unwrap().get(kind).is_some() {
                    places.push((workflow.clone(), transcript.clone(), turn, position));
                }
            }
        }
    }
    places
}

/// S0-47, S0-55, S0-58, S0-59, S0-72, C-5, C-49, T-24, T-27: field by field over every kind of command.
#[test]
fn every_field_of_every_command_is_compared_as_the_table_says() {
    for (kind, fields) in TABLE {
        let places = places(kind);
        assert!(!places.is_empty(), "no transcript holds {kind}");
        let (workflow, transcript, turn, position) = &places[0];
        for (field, expected) in *fields {
            let other = mutated(transcript, *turn, *position, &[kind, field]).unwrap();
            let (change, named) = replayed(workflow, &other);
            assert_eq!(change, *expected, "{kind}.{field}: {named:?}");
            let name = match (*kind, *field) {
                ("memo" | "search_attributes", _) => kind,
                // A run whose record does not hold the patch takes the old path, which decides something else.
                ("patch", "id") => "command",
                (_, field) => field,
            };
            assert!(change == Passes || named.iter().any(|named| named == name), "{kind}.{field}: {named:?}");
        }
    }
}

/// S0-47, S0-55: a failure is what it says, and not where it was seen.
#[test]
fn every_field_of_a_failure_is_compared_as_the_table_says() {
    let (workflow, transcript, turn, position) = places("fail").remove(0);
    for (field, expected) in OF_A_FAILURE {
        let other = mutated(&transcript, turn, position, &["fail", "failure", field]).unwrap();
        assert_eq!(replayed(&workflow, &other).0, *expected, "{field}");
    }
}

/// S0-46: what is recorded of a command is its kind with every field, its unit and its call site; and the table above
/// knows them all.
#[test]
fn every_recorded_field_stands_in_the_table() {
    let known: BTreeMap<&str, BTreeSet<&str>> =
        TABLE.iter().map(|(kind, fields)| (*kind, fields.iter().map(|(field, _)| *field).collect())).collect();
    let mut seen = BTreeSet::new();
    for (_, transcript) in transcripts() {
        for command in transcript.turns.iter().flat_map(|turn| &turn.commands) {
            let json = serde_json::to_value(command).unwrap();
            assert_eq!(json["site"].as_str().map(|site| site.contains(".rs:")), Some(true));
            assert!(json["unit"].as_str().is_some());
            let (kind, fields) = json["kind"].as_object().unwrap().iter().next().unwrap();
            seen.insert(kind.clone());
            for field in fields.as_object().unwrap().keys() {
                let known = known.get(kind.as_str()).unwrap_or_else(|| panic!("{kind} is not in the table"));
                assert!(known.contains(field.as_str()), "{kind}.{field} is not in the table");
            }
        }
    }
    assert_eq!(seen.len(), TABLE.len(), "every kind of command was recorded: {seen:?}");
}

/// S0-46, S0-59, T-28: unit and call site are recorded outside identity: another place in the source, another worker or
/// backend that recorded it, change nothing.
#[test]
fn who_recorded_a_turn_and_where_it_was_decided_are_not_compared() {
    for (workflow, mut transcript) in transcripts() {
        for record in &mut transcript.turns {
            record.build = "another worker".into();
            for command in &mut record.commands {
                command.site = CallSite { file: "elsewhere.rs".into(), line: 1, column: 1 };
                command.unit = "[p7]".parse().unwrap();
            }
        }
        assert_eq!(replayed(&workflow, &transcript), (Passes, vec![]));
    }
}

/// S4-33: what is stored of a scheduled activity, in its fixed form.
#[test]
fn a_stored_activity_holds_all_that_a_task_needs() {
    let (_, transcript, turn, position) = places("activity").remove(0);
    let command = &transcript.turns[turn].commands[position];
    expect![[r#"{"activity":{"seq":0,"id":"0349e02b-958f-43af-861b-29cc10fc0596","activity":"A","input":["input"],"headers":{"trace":"1"},"queue":"other","timeouts":{"schedule_to_close":"1s","schedule_to_start":"2s","start_to_close":"3s","heartbeat":"4s"},"retry":{"first_pause":"1s","factor":2.0,"max_pause":"100s","attempts":4,"non_retryable":["Fatal"]},"cancel":"abandon","priority":{"key":3,"fairness_key":"tenant","fairness_weight":2.0},"summary":"what it is for"}}"#]].assert_eq(&serde_json::to_string(&command.kind).unwrap());
}

/// A payload as a cipher writes it: other bytes each time, with a digest of the value under them.
fn encrypted(payload: &Payload, bytes: &'static str, key: &'static str) -> Payload {
    let value = payload.as_text().unwrap().to_owned().into();
    Payload { digest: Some(Box::new(PayloadDigest { key: key.into(), value })), ..Payload::json(bytes) }
}

/// Replay compares payloads by their digests where both have one of the same key, and by their bytes otherwise. The
/// recorded bytes hold.
#[test]
fn input_is_compared_by_digest_where_both_sides_have_one_of_the_same_key() {
    async fn pays(ctx: Ctx, input: Payload) -> Done {
        ctx.set_state("card", encrypted(&input, "new state", "k1"));
        ctx.activity("pay", encrypted(&input, "new input", "k1")).await
    }
    let workflow = workflow(pays);
    let mut play = Player::new(workflow.clone(), Pins::default(), Mode::Whole);
    play.play("start = 4711");
    let recorded_as = |state: Payload, input: Payload| {
        let mut transcript = play.transcript.clone();
        let [of_state, of_activity] = &mut transcript.turns[0].commands[..] else { panic!("two commands") };
        match (&mut of_state.kind, &mut of_activity.kind) {
            (CommandKind::State(c), CommandKind::Activity(activity)) => {
                (c.value, std::sync::Arc::make_mut(activity).input) = (Some(state), vec![input]);
            }
            other => panic!("{other:?}"),
        }
        replayed(&workflow, &transcript)
    };
    let (same, other) = (Payload::json("4711"), Payload::json("0815"));
    let old = |value: &Payload, key| encrypted(value, "old", key);
    assert_eq!(recorded_as(old(&same, "k1"), old(&same, "k1")), (Passes, vec![]));
    assert_eq!(recorded_as(old(&same, "k1"), old(&other, "k1")), (Fails, vec!["input".to_owned()]));
    assert_eq!(recorded_as(old(&same, "k1"), old(&same, "k2")), (Fails, vec!["input".to_owned()]));
    assert_eq!(recorded_as(old(&other, "k1"), old(&same, "k1")), (Fails, vec!["value".to_owned()]));
    let without = |payload: Payload| Payload { digest: None, ..payload };
    let (state, input) = (encrypted(&same, "new state", "k1"), encrypted(&same, "new input", "k1"));
    assert_eq!(recorded_as(without(state.clone()), without(input)), (Passes, vec![]));
    assert_eq!(recorded_as(without(state), without(old(&same, "k1"))), (Fails, vec!["input".to_owned()]));
}
