//! The JSON form of every call, reply and error: read back here, and kept in a golden file.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use dacapo_core::{
    AttributeValue, CallSite, Failure, Headers, Inspection, Name, Operation, Payload, PendingOperation, Pins,
    PolicySpec, Retry, Seq, Timestamp, UnitId, UnitView, Wait,
};
use dacapo_testkit::assert_golden;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::*;

const NOON: Timestamp = Timestamp::from_millis(1_772_366_400_000);

fn run() -> RunRef {
    RunRef::exact("order-42", "r-1")
}

fn input() -> Vec<Payload> {
    vec![
        Payload::json("\"two lamps\""),
        Payload::new("binary/encrypted".into(), vec![0xff, 0].into()),
        Payload::empty(),
    ]
}

fn headers() -> Headers {
    BTreeMap::from([(Name::from("trace"), Payload::json("1"))])
}

fn failure() -> Failure {
    Failure::application("the bank is closed").typed("Closed").non_retryable()
}

fn start() -> StartRun {
    StartRun {
        workflow: "checkout".into(),
        workflow_id: "order-42".into(),
        input: input(),
        queue: Some("orders".into()),
        id_reuse: dacapo_core::IdReuse::default(),
        id_conflict: IdConflict::UseExisting,
        request_id: Some("request-7".into()),
        execution_timeout: Some(Duration::from_secs(3_600)),
        run_timeout: Some(Duration::from_millis(1_500)),
        delay: Some(Duration::from_secs(1)),
        retry: Some(Retry::default()),
        memo: BTreeMap::from([("note".into(), Payload::json("1"))]),
        attributes: BTreeMap::from([("cents".into(), AttributeValue::Int(700))]),
        headers: headers(),
        pins: Some(Pins { policy: PolicySpec::Random { seed: 1 }, ..Pins::default() }),
    }
}

fn update() -> SendUpdate {
    SendUpdate {
        id: "u-1".into(),
        name: "rename".into(),
        input: input(),
        headers: headers(),
        wait: UpdateWait::Accepted,
    }
}

fn calls() -> Vec<ClientCall> {
    use ClientCall as Call;
    let signal = SendSignal { name: "go".into(), input: input(), headers: headers(), request_id: Some("s-1".into()) };
    let query = QueryRun { name: "total".into(), input: input(), headers: headers() };
    let filter = Filter {
        search: Some("customer = 'ada'".parse().unwrap()),
        status: Some(Status::Open),
        workflow: Some("checkout".into()),
        workflow_id: Some("order-42".into()),
        stuck: true,
        started_from: Some(NOON),
        started_before: Some(NOON),
    };
    let poll = PollUpdate { id: "u-1".into(), wait: UpdateWait::Completed };
    let completion = CompleteActivity { activity_id: "charge-1".into(), result: Ok(Payload::json("1")) };
    let resolution = ResolvePromise { promise: "consent".into(), result: Err(failure()) };
    let cursor = || Some(Cursor("7".into()));
    vec![
        Call::Start(start()),
        Call::Signal(RunRef::latest("order-42"), signal),
        Call::Query(run(), query),
        Call::Update(run(), update()),
        Call::UpdateResult(run(), poll),
        Call::Cancel(run(), "enough".into()),
        Call::Terminate(run(), "enough".into()),
        Call::Reset(run(), 3, "again".into()),
        Call::RunResult(run()),
        Call::ResultOrStuck(run()),
        Call::Describe(run()),
        Call::Published(run()),
        Call::List(filter, cursor(), 100),
        Call::Count(Filter::default()),
        Call::Counts(Filter::default(), Some(GroupBy::Workflow)),
        Call::History(run(), cursor(), 100),
        Call::RawHistory(run()),
        Call::Complete("dcpt1-token".into(), Err(failure())),
        Call::Heartbeat("dcpt1-token".into(), Payload::json("0.5")),
        Call::CompleteActivity(run(), completion),
        Call::ResolvePromise(run(), resolution),
        Call::Inspect(run()),
        Call::Release(run()),
        Call::Delete(run()),
        Call::StuckRuns,
        Call::Nodes,
        Call::Verify,
        Call::BackUp("copy.db".into()),
    ]
}

fn shared_node() -> Node {
    let mut node = Node::new("web-1".into(), "1.4.0".into(), vec!["orders".into()]);
    (node.shards, node.lease, node.answers) = (Some(8), Some(Duration::from_millis(9_500)), true);
    node
}

fn description() -> Description {
    let mut activity = PendingActivity::new(Seq(3), "charge-1".into(), "charge".into());
    activity.summary = Some("the first half".into());
    activity.queue = "orders".into();
    activity.state = ActivityState::Waiting;
    (activity.attempt, activity.attempts, activity.priority) = (2, 5, 1);
    (activity.scheduled, activity.started, activity.next_attempt) = (NOON, Some(NOON), Some(NOON));
    (activity.last_heartbeat, activity.details) = (Some(NOON), Some(Payload::json("0.5")));
    activity.last_failure = Some(failure());
    let mut run = Description::new("order-42".into(), "r-2".into());
    (run.first_run_id, run.next_run_id) = ("r-1".into(), Some("r-3".into()));
    run.parent = Some(RunRef::exact("cart-1", "r-0"));
    (run.workflow, run.queue, run.status) = ("checkout".into(), "orders".into(), Status::Failed);
    (run.started, run.closed, run.turns) = (NOON, Some(NOON), 7);
    run.stuck = Some(Stuck {
        cause: StuckCause::UnservedQueue,
        subject: "gpu".into(),
        reason: "no worker serves it".into(),
        since: NOON,
        attempts: 3,
        retry: NOON,
    });
    run.memo = BTreeMap::from([("note".into(), Payload::json("1"))]);
    run.attributes = BTreeMap::from([("kind".into(), AttributeValue::Keyword("lamp".into()))]);
    (run.published, run.result) = (Some(Payload::json("{}")), Some(Err(failure())));
    (run.pending, run.messages_waiting) = (vec![activity], 2);
    run
}

fn kinds() -> Vec<EventKind> {
    let mut timer = OperationStart::new(Seq(0), OperationKind::Timer, Name::default());
    (timer.duration, timer.summary) = (Some(Duration::from_millis(1_209_600_500)), Some("until noon".into()));
    let mut child = OperationStart::new(Seq(1), OperationKind::Child, "pack".into());
    (child.input, child.target) = (input(), Some(RunRef::latest("pack-1")));
    let ended =
        |result, attempts, last_failure| EventKind::OperationEnded { seq: Seq(1), result, attempts, last_failure };
    let closed = |status, result, next_run_id| EventKind::Closed { status, result, next_run_id };
    vec![
        EventKind::Started { workflow: "checkout".into(), input: input() },
        EventKind::Reset,
        EventKind::Signalled { signal: "go".into(), input: input() },
        EventKind::UpdateReceived { id: "u-1".into(), update: "rename".into(), input: input() },
        EventKind::UpdateAccepted { id: "u-1".into() },
        EventKind::UpdateCompleted { id: "u-1".into(), result: Ok(Payload::json("1")) },
        EventKind::CancelRequested { reason: "enough".into() },
        EventKind::OperationStarted(Box::new(timer)),
        EventKind::OperationStarted(Box::new(child)),
        EventKind::OperationAccepted { seq: Seq(1), run_id: Some("r-9".into()) },
        ended(Ok(Payload::empty()), 1, None),
        ended(Err(failure()), 3, Some(failure())),
        EventKind::OperationCancelled { seq: Seq(0) },
        EventKind::Patched { patch: "gift".into() },
        EventKind::Annotated { names: vec!["cents".into()] },
        closed(Status::ContinuedAsNew, Some(Err(failure())), Some("r-3".into())),
        closed(Status::Completed, Some(Ok(Payload::json("1"))), None),
        EventKind::Unknown,
    ]
}

fn inspection() -> Inspection {
    let wait = Wait { what: "activity charge #0".into(), since: 1, site: CallSite::default() };
    let operation = PendingOperation {
        seq: Seq(0),
        operation: Operation::Activity,
        name: "charge".into(),
        unit: Some(UnitId::default()),
        since: 1,
        site: CallSite::default(),
    };
    Inspection {
        turn: 2,
        round: 5,
        running: None,
        runnable: vec![UnitId::default()],
        units: vec![UnitView { id: UnitId::default(), since: 0, waits: vec![wait] }],
        pending: vec![operation],
        next_seq: Seq(1),
    }
}

fn replies() -> Vec<ClientReply> {
    use ClientReply as Reply;
    let events = kinds().into_iter().map(|kind| HistoryEvent::new(NOON, 3, kind)).collect();
    vec![
        Reply::Done,
        Reply::Started(Started::new(run(), true)),
        Reply::Payload(Payload::json("1")),
        Reply::Update(UpdateState::Accepted),
        Reply::Update(UpdateState::Completed(Err(failure()))),
        Reply::RunResult(RunResult::new(Status::TimedOut, Err(failure()))),
        Reply::Description(Box::new(description())),
        Reply::Published(Some(Payload::json("{}"))),
        Reply::Page(Page::new(vec![Description::new("order-42".into(), "r-1".into())], Some(Cursor("7".into())))),
        Reply::Count(3),
        Reply::Counts(vec![Count::new(None, 20_000), Count::new(Some("checkout".to_owned()), 3)]),
        Reply::History(HistoryPage::new(events, Some(Cursor("7".into())))),
        Reply::RawHistory(RawHistory::new("dacapo-transcript", "turn 0")),
        Reply::Heartbeat(Some("enough".into())),
        Reply::Inspection(Box::new(inspection())),
        Reply::StuckRuns(vec![StuckRuns::new(2, description())]),
        Reply::Nodes(vec![shared_node(), Node::new("process 7".into(), "1.4.0".into(), vec!["orders".into()])]),
        Reply::Problems(vec![Problem::new(Some(run()), "turn 3 cannot be read"), Problem::new(None, "a row is gone")]),
    ]
}

/// The error that comes after this one: every error has its place in the line, or this does not compile.
fn after(error: Option<&Error>) -> Option<Error> {
    let workflow_id = || Name::from("order-42");
    let activity_id = || Name::from("charge-1");
    let text = || "what failed: why".to_owned();
    Some(match error {
        None => Error::NotFound { workflow_id: workflow_id(), run_id: Some("r-1".into()) },
        Some(Error::NotFound { .. }) => Error::Closed { workflow_id: workflow_id(), status: Status::ContinuedAsNew },
        Some(Error::Closed { .. }) => Error::UnknownWorkflow { workflow: "chekout".into(), known: "checkout".into() },
        Some(Error::UnknownWorkflow { .. }) => Error::InvalidArgument(text()),
        Some(Error::InvalidArgument(_)) => {
            Error::PayloadTooLarge { what: "the input".into(), size: 101, limit: 100, setting: Some("limit".into()) }
        }
        Some(Error::PayloadTooLarge { .. }) => {
            Error::InboxFull { workflow_id: workflow_id(), waiting: 3, limit: 3, setting: None }
        }
        Some(Error::InboxFull { .. }) => {
            Error::WorkflowIdInUse { workflow_id: workflow_id(), run_id: "r-1".into(), reason: text() }
        }
        Some(Error::WorkflowIdInUse { .. }) => Error::RequestIdInUse { request_id: "request-7".into(), reason: text() },
        Some(Error::RequestIdInUse { .. }) => {
            let (promise, open) = ("consnet".into(), "consent".into());
            Error::PromiseNotFound { workflow_id: workflow_id(), promise, open }
        }
        Some(Error::PromiseNotFound { .. }) => Error::AlreadyResolved("consent".into()),
        Some(Error::AlreadyResolved(_)) => {
            Error::ActivityNotFound { workflow_id: workflow_id(), activity_id: activity_id() }
        }
        Some(Error::ActivityNotFound { .. }) => Error::InvalidToken(text()),
        Some(Error::InvalidToken(_)) => {
            let (workflow_id, activity_id) = (workflow_id(), activity_id());
            Error::StaleToken { workflow_id, activity_id, attempt: 1, current: 2 }
        }
        Some(Error::StaleToken { .. }) => {
            Error::AttemptTimedOut { workflow_id: workflow_id(), activity_id: activity_id(), attempt: 1 }
        }
        Some(Error::AttemptTimedOut { .. }) => {
            Error::UpdateNotFound { workflow_id: workflow_id(), update_id: "u-1".into() }
        }
        Some(Error::UpdateNotFound { .. }) => Error::UpdateRejected(Box::new(failure())),
        Some(Error::UpdateRejected(_)) => Error::UpdateWaits(text()),
        Some(Error::UpdateWaits(_)) => Error::QueryFailed(Box::new(failure())),
        Some(Error::QueryFailed(_)) => Error::Stuck(text()),
        Some(Error::Stuck(_)) => Error::RunOpen,
        Some(Error::RunOpen) => Error::RunExists("r-1".into()),
        Some(Error::RunExists(_)) => Error::Refused(text()),
        Some(Error::Refused(_)) => Error::Unsupported { feature: Feature::Nexus, backend: "memory".into() },
        Some(Error::Unsupported { .. }) => Error::ReadOnly(text()),
        Some(Error::ReadOnly(_)) => Error::ShutDown,
        Some(Error::ShutDown) => Error::Busy(text()),
        Some(Error::Busy(_)) => Error::Full(text()),
        Some(Error::Full(_)) => Error::Damaged(text()),
        Some(Error::Damaged(_)) => Error::Unavailable(text()),
        Some(Error::Unavailable(_)) => {
            serde_json::from_value(json!({ "error": "over_quota", "with": { "limit": 3 } })).unwrap()
        }
        Some(Error::Unknown(_)) => return None,
    })
}

fn errors() -> Vec<Error> {
    std::iter::successors(after(None), |error| after(Some(error))).collect()
}

/// Writes each value as a line of JSON, and reads it again.
#[track_caller]
fn lines<T: Serialize + DeserializeOwned + PartialEq + Debug>(values: &[T]) -> String {
    let line = |value: &T| {
        let line = serde_json::to_string(value).unwrap();
        assert_eq!(serde_json::from_str::<T>(&line).unwrap(), *value, "{line}");
        line + "\n"
    };
    values.iter().map(line).collect()
}

/// The variants of a tagged enum, which serde lists when it reads one that it does not know.
fn variants<T: DeserializeOwned + Debug>(tag: &str) -> Vec<String> {
    let refused = serde_json::from_value::<T>(json!({ tag: "?" })).unwrap_err().to_string();
    let (_, expected) = refused.split_once("expected one of ").unwrap();
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The variants that these lines show, each once.
fn shown(lines: &str, tag: &str) -> Vec<String> {
    let word = |line| serde_json::from_str::<Value>(line).unwrap()[tag].as_str().unwrap().to_owned();
    let mut words: Vec<String> = lines.lines().map(word).collect();
    words.dedup();
    words
}

#[test]
fn calls_replies_and_errors_are_what_their_number_says() {
    let verbs: Vec<&str> = calls().iter().map(ClientCall::verb).collect();
    let (calls, replies, errors) = (lines(&calls()), lines(&replies()), lines(&errors()));
    assert_eq!(shown(&calls, "call"), variants::<ClientCall>("call"));
    assert_eq!(shown(&calls, "call"), verbs);
    assert_eq!(shown(&replies, "reply"), variants::<ClientReply>("reply"));
    let all = format!("{calls}{replies}{errors}");
    assert!(!all.contains("\"secs\""), "durations are written as text");
    assert_golden(env!("CARGO_MANIFEST_DIR"), "calls", CALLS_NUMBER, "jsonl", &all);
}

#[test]
fn reply_of_an_older_backend_is_read_without_the_fields_that_it_does_not_send() {
    let older: Description = serde_json::from_value(json!({
        "workflow_id": "a", "run_id": "r", "status": "open", "pending": [{ "seq": 0, "id": "i", "activity": "charge", "state": "ready" }],
        "stuck": { "cause": "panic", "reason": "no order" },
    }))
    .unwrap();
    let mut expected = Description::new("a".into(), "r".into());
    let mut activity = PendingActivity::new(Seq(0), "i".into(), "charge".into());
    activity.state = ActivityState::Ready;
    expected.pending = vec![activity];
    let (cause, subject, reason) = (StuckCause::Panic, String::new(), "no order".to_owned());
    let (since, attempts, retry) = (Timestamp::default(), 0, Timestamp::default());
    expected.stuck = Some(Stuck { cause, subject, reason, since, attempts, retry });
    assert_eq!(older, expected);
    let started: HistoryEvent = serde_json::from_value(json!({
        "at": 0, "turn": 0, "event": "operation_started", "seq": 2, "operation": "timer",
    }))
    .unwrap();
    let start = OperationStart::new(Seq(2), OperationKind::Timer, Name::default());
    assert_eq!(started.kind, EventKind::OperationStarted(Box::new(start)));
}

/// One word that is new made the whole page unreadable.
#[test]
fn page_of_a_newer_backend_is_read_with_the_status_and_the_cause_as_unknown() {
    let page: Page = serde_json::from_value(json!({
        "runs": [{
            "workflow_id": "a", "run_id": "r", "status": "paused", "colour": "red",
            "stuck": { "cause": "over_quota", "reason": "too many", "bill": 3 },
        }],
    }))
    .unwrap();
    let run = &page.runs[0];
    assert_eq!((run.status, run.status.is_open()), (Status::Unknown, false));
    assert_eq!(run.stuck.as_ref().unwrap().cause, StuckCause::Unknown);
}

/// Types without `#[non_exhaustive]`: what callers make and a backend takes apart field by field, so that a backend which ignores a
/// new field does not compile; the two states of an update; and what is one value for ever.
const EXHAUSTIVE: [&str; 14] = [
    "Filter",
    "Cursor",
    "IdConflict",
    "StartRun",
    "SendSignal",
    "QueryRun",
    "SendUpdate",
    "PollUpdate",
    "UpdateWait",
    "UpdateState",
    "CompleteActivity",
    "ResolvePromise",
    "RunHistory",
    "CallClient",
];

/// Stores write this answer column by column, so they take it apart as well.
const TAKEN_APART_BY_STORES: [&str; 1] = ["Stuck"];

#[test]
fn answers_can_gain_fields_and_requests_cannot_do_so_unseen() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut exhaustive = Vec::new();
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    for file in files.filter(|file| file.is_file()) {
        let text = std::fs::read_to_string(file).unwrap();
        let mut can_grow = false;
        for line in text.lines() {
            let item = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum "));
            let name = item.and_then(|item| item.split(|c: char| !c.is_alphanumeric()).next());
            exhaustive.extend(name.filter(|_| !can_grow).map(str::to_owned));
            can_grow = line == "#[non_exhaustive]" || can_grow && line.starts_with(['#', '/']);
        }
    }
    exhaustive.sort();
    let mut expected: Vec<&str> = EXHAUSTIVE.into_iter().chain(TAKEN_APART_BY_STORES).collect();
    expected.sort_unstable();
    assert_eq!(exhaustive, expected, "docs/compatibility.md has the rule");
}
