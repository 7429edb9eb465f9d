//! Every job and every command of Temporal's protocol, built from our types, against the table in `docs/border.md`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{
    Activation, Answer, AttributeValue, CallNexus, CancelExternal, CancelOperation, CancelType, CommandKind,
    CompleteUpdate, Completion, ContinueAsNew, Continued, Failure, FailureKind, IdReuse, Job, Lineage, Name, Operation,
    OperationId, Outcome, ParentClose, PatchMarker, Payload, Priority, Query, Rejected, RelatedRun, Resolution, Retry,
    ScheduleActivity, ScheduleLocalActivity, ScheduleSideEffect, Seq, Signal, SignalExternal, Start, StartChild,
    StartOutcome, StartTimer, Target, Terms, Timeouts, Timestamp, TurnDone, Update,
};

/// The rows of the table under this heading: what Temporal calls it, and the paths of our types in it.
fn rows(heading: &str) -> BTreeMap<String, Vec<String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/border.md");
    let text = std::fs::read_to_string(path).unwrap();
    let section = text.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let types = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    section
        .lines()
        .filter(|line| line.starts_with("| ") && !line.contains("| here |"))
        .map(|row| (cells(row)[1].clone(), types(&cells(row)[2])))
        .collect()
}

fn name(text: &'static str) -> Name {
    Name::from_static(text)
}

fn failure() -> Box<Failure> {
    Box::new(Failure::new(FailureKind::Cancelled, "no").typed("AlreadyExists"))
}

fn attributes() -> BTreeMap<Name, AttributeValue> {
    BTreeMap::from([(name("key"), "value".into())])
}

fn payloads() -> BTreeMap<Name, Payload> {
    BTreeMap::from([(name("key"), Payload::from("1"))])
}

fn resolve(resolution: Resolution) -> Activation {
    turn(Job::resolve(Seq(3), resolution))
}

fn turn(job: Job) -> Activation {
    Activation::Turn(dacapo_core::Turn::new(Timestamp::from_millis(1), vec![job]))
}

fn start() -> Start {
    let run = || RelatedRun { namespace: name("n"), workflow_id: name("w"), run_id: name("r") };
    let lineage = Lineage {
        parent: Some(run()),
        root: Some(run()),
        continued_from: Some(name("before")),
        continued_because: Some(Continued::Retry),
        last_failure: Some(failure()),
        last_result: vec!["1".into()],
        first_run_id: name("first"),
        original_run_id: name("original"),
    };
    let terms = Terms {
        execution_timeout: Some(Duration::from_secs(3)),
        run_timeout: Some(Duration::from_secs(2)),
        task_timeout: Some(Duration::from_secs(1)),
        expires: Some(Timestamp::from_millis(9)),
        retry: Some(Retry::exponential()),
        cron: Some(name("* * * * *")),
        cron_interval: Some(Duration::from_secs(60)),
        priority: Priority { key: 1, fairness_key: Some(name("tenant")), fairness_weight: Some(2.0) },
    };
    Start {
        workflow: name("type"),
        workflow_id: name("id"),
        run_id: name("run"),
        input: vec!["1".into(), "2".into()],
        seed: u64::MAX,
        queue: name("queue"),
        started: Timestamp::from_millis(1),
        attempt: 2,
        headers: payloads(),
        memo: payloads(),
        search_attributes: attributes(),
        identity: name("who"),
        lineage: Some(Box::new(lineage)),
        terms: Some(Box::new(terms)),
    }
}

/// Temporal's jobs, each as the activation that brings it.
fn jobs() -> Vec<(&'static str, Vec<Activation>)> {
    let done = || Outcome::Completed("1".into());
    let failed = || Outcome::Failed(failure());
    let signal = Signal { name: name("s"), input: vec!["1".into()], identity: name("who"), headers: payloads() };
    let update = Update {
        id: name("u"),
        name: name("n"),
        input: vec!["1".into()],
        headers: payloads(),
        identity: name("who"),
        accepted: true,
    };
    let query = Query { id: name("legacy_query"), name: name("q"), input: vec!["1".into()], headers: payloads() };
    let backoff = Resolution::Backoff {
        attempt: 3,
        pause: Duration::from_secs(90),
        first_scheduled: Some(Timestamp::from_millis(1)),
    };
    vec![
        ("InitializeWorkflow", vec![turn(Job::Start(Box::new(start())))]),
        ("FireTimer", vec![resolve(Resolution::Timer)]),
        (
            "ResolveActivity",
            vec![resolve(Resolution::Activity(done())), resolve(Resolution::Activity(failed())), resolve(backoff)],
        ),
        (
            "ResolveChildWorkflowExecutionStart",
            vec![
                resolve(Resolution::ChildStarted(StartOutcome::As(name("run")))),
                resolve(Resolution::ChildStarted(StartOutcome::Failed(failure()))),
            ],
        ),
        ("ResolveChildWorkflowExecution", vec![resolve(Resolution::Child(failed()))]),
        ("ResolveSignalExternalWorkflow", vec![resolve(Resolution::SignalExternal { failure: Some(failure()) })]),
        ("ResolveRequestCancelExternalWorkflow", vec![resolve(Resolution::CancelExternal { failure: None })]),
        ("ResolveNexusOperationStart", vec![resolve(Resolution::NexusStarted(StartOutcome::As(name("token"))))]),
        ("ResolveNexusOperation", vec![resolve(Resolution::Nexus(done()))]),
        ("SignalWorkflow", vec![turn(Job::Signal(Box::new(signal)))]),
        ("DoUpdate", vec![turn(Job::Update(Box::new(update)))]),
        ("CancelWorkflow", vec![turn(Job::Cancel { reason: "why".to_owned() })]),
        ("QueryWorkflow", vec![Activation::Query(vec![query])]),
        ("NotifyHasPatch", vec![turn(Job::Patch { id: name("p") })]),
        ("UpdateRandomSeed", vec![turn(Job::Seed { seed: 7 })]),
        ("RemoveFromCache", vec![Activation::Evict]),
    ]
}

fn cancel(operation: Operation) -> Vec<Completion> {
    completion(vec![CommandKind::Cancel(CancelOperation { seq: Seq(3), operation, reason: "why".to_owned() })])
}

fn completion(kinds: Vec<CommandKind>) -> Vec<Completion> {
    let command = |kind| dacapo_core::Command { kind, unit: "[p0]".parse().unwrap(), site: Default::default() };
    let commands = kinds.into_iter().map(command).collect();
    vec![Completion::Turn(TurnDone { number: Some(1), commands, ..TurnDone::default() })]
}

fn timeouts() -> Timeouts {
    let some = |seconds| Some(Duration::from_secs(seconds));
    Timeouts { schedule_to_close: some(4), schedule_to_start: some(3), start_to_close: some(2), heartbeat: some(1) }
}

fn local() -> Vec<CommandKind> {
    let id = OperationId::of(7, Seq(3));
    let activity = ScheduleLocalActivity {
        seq: Seq(3),
        id,
        activity: name("type"),
        input: vec!["1".into(), "2".into()],
        headers: payloads(),
        timeouts: timeouts(),
        retry: Some(Retry::none()),
        local_retry_threshold: Some(Duration::from_secs(60)),
        cancel: CancelType::WaitCompleted,
        attempt: 2,
        first_scheduled: Some(Timestamp::from_millis(1)),
        summary: Some("a line".to_owned()),
    };
    let (retry, timeouts, summary) = (Some(Retry::none()), timeouts(), None);
    let run = ScheduleSideEffect { seq: Seq(4), id, name: name("effect"), retry, timeouts, summary };
    vec![CommandKind::LocalActivity(Box::new(activity)), CommandKind::SideEffect(Box::new(run))]
}

fn child() -> CommandKind {
    CommandKind::Child(Box::new(StartChild {
        seq: Seq(3),
        namespace: Some(name("n")),
        workflow_id: name("w"),
        workflow: name("type"),
        queue: Some(name("q")),
        input: vec!["1".into()],
        execution_timeout: Some(Duration::from_secs(3)),
        run_timeout: Some(Duration::from_secs(2)),
        task_timeout: Some(Duration::from_secs(1)),
        parent_close: ParentClose::RequestCancel,
        id_reuse: IdReuse::RejectDuplicate,
        retry: Some(Retry::exponential()),
        cron: Some(name("* * * * *")),
        headers: payloads(),
        memo: payloads(),
        search_attributes: attributes(),
        cancel: CancelType::WaitRequested,
        priority: Priority::default(),
        summary: None,
    }))
}

fn activity() -> CommandKind {
    CommandKind::Activity(Arc::new(ScheduleActivity {
        seq: Seq(3),
        id: OperationId::of(7, Seq(3)),
        activity: name("type"),
        input: vec!["1".into(), "2".into()],
        headers: payloads(),
        queue: Some(name("q")),
        timeouts: timeouts(),
        retry: Some(Retry::exponential()),
        cancel: CancelType::Abandon,
        priority: Priority::default(),
        summary: Some("a line".to_owned()),
    }))
}

fn nexus() -> CommandKind {
    CommandKind::Nexus(Box::new(CallNexus {
        seq: Seq(3),
        endpoint: name("e"),
        service: name("s"),
        operation: name("o"),
        input: "1".into(),
        schedule_to_close: Some(Duration::from_secs(3)),
        schedule_to_start: Some(Duration::from_secs(2)),
        start_to_close: Some(Duration::from_secs(1)),
        headers: BTreeMap::from([(name("key"), name("value"))]),
        cancel: CancelType::TryCancel,
        summary: None,
    }))
}

fn continue_as_new() -> CommandKind {
    CommandKind::ContinueAsNew(Box::new(ContinueAsNew {
        workflow: name("type"),
        queue: Some(name("q")),
        input: vec!["1".into()],
        run_timeout: Some(Duration::from_secs(2)),
        task_timeout: Some(Duration::from_secs(1)),
        memo: Some(payloads()),
        headers: payloads(),
        search_attributes: Some(attributes()),
        retry: Some(Retry::exponential()),
        start_delay: Some(Duration::from_secs(1)),
    }))
}

/// Temporal's commands, each as the completion that carries it.
fn commands() -> Vec<(&'static str, Vec<Completion>)> {
    let timer = StartTimer { seq: Seq(3), duration: Duration::from_secs(1), summary: Some("a line".to_owned()) };
    let child_target = Target::Child { workflow_id: name("w") };
    let target = Target::Workflow { namespace: Some(name("n")), workflow_id: name("w"), run_id: Some(name("r")) };
    let signal = SignalExternal {
        seq: Seq(3),
        target: child_target,
        signal: name("s"),
        input: vec!["1".into()],
        headers: payloads(),
    };
    let cancel_external = CancelExternal { seq: Seq(3), target, reason: "why".to_owned() };
    let attribute_changes = BTreeMap::from([(name("key"), Some(1_i64.into())), (name("gone"), None)]);
    let changes = BTreeMap::from([(name("key"), Some(Payload::from("1"))), (name("gone"), None)]);
    let answered = CompleteUpdate { update: name("u"), outcome: Outcome::Failed(failure()) };
    let mut update = completion(vec![
        CommandKind::AcceptUpdate { update: name("u") },
        CommandKind::CompleteUpdate(Box::new(answered)),
    ]);
    let rejected = vec![Rejected { update: name("u"), failure: *failure() }];
    update.push(Completion::Turn(TurnDone { rejected, ..TurnDone::default() }));
    let answer = Answer { id: name("legacy_query"), result: Err(*failure()) };
    let mut local_cancels = cancel(Operation::LocalActivity);
    local_cancels.extend(cancel(Operation::SideEffect));
    vec![
        ("StartTimer", completion(vec![CommandKind::Timer(Box::new(timer))])),
        ("CancelTimer", cancel(Operation::Timer)),
        ("ScheduleActivity", completion(vec![activity()])),
        ("RequestCancelActivity", cancel(Operation::Activity)),
        ("ScheduleLocalActivity", completion(local())),
        ("RequestCancelLocalActivity", local_cancels),
        ("StartChildWorkflowExecution", completion(vec![child()])),
        ("CancelChildWorkflowExecution", cancel(Operation::Child)),
        ("SignalExternalWorkflowExecution", completion(vec![CommandKind::SignalExternal(Box::new(signal))])),
        ("CancelSignalWorkflow", cancel(Operation::SignalExternal)),
        (
            "RequestCancelExternalWorkflowExecution",
            completion(vec![CommandKind::CancelExternal(Box::new(cancel_external))]),
        ),
        ("ScheduleNexusOperation", completion(vec![nexus()])),
        ("RequestCancelNexusOperation", cancel(Operation::Nexus)),
        ("SetPatchMarker", completion(vec![CommandKind::Patch(PatchMarker { id: name("p"), deprecated: true })])),
        ("UpsertWorkflowSearchAttributes", completion(vec![CommandKind::SearchAttributes(attribute_changes)])),
        ("ModifyWorkflowProperties", completion(vec![CommandKind::Memo(changes)])),
        ("UpdateResponse", update),
        ("RespondToQuery", vec![Completion::Query(vec![answer])]),
        ("CompleteWorkflowExecution", completion(vec![CommandKind::Complete { result: "1".into() }])),
        ("FailWorkflowExecution", completion(vec![CommandKind::Fail { failure: failure() }])),
        ("CancelWorkflowExecution", completion(vec![CommandKind::CancelRun { failure: failure() }])),
        ("ContinueAsNewWorkflowExecution", completion(vec![continue_as_new()])),
    ]
}

/// The path by which the table names the type that carries something.
fn path_of_activation(activation: &Activation) -> String {
    match activation {
        Activation::Query(_) => "Activation::Query".to_owned(),
        Activation::Evict => "Activation::Evict".to_owned(),
        Activation::Turn(turn) => match &turn.jobs[0] {
            Job::Resolve { resolution, .. } => format!("Resolution::{}", variant(resolution)),
            job => format!("Job::{}", variant(job)),
        },
    }
}

fn paths_of_completion(completion: &Completion) -> Vec<String> {
    match completion {
        Completion::Query(_) => vec!["Completion::Query".to_owned()],
        Completion::Turn(done) if !done.rejected.is_empty() => vec!["TurnDone::rejected".to_owned()],
        Completion::Turn(done) => done.commands.iter().map(|c| format!("CommandKind::{}", variant(&c.kind))).collect(),
        other => panic!("{other:?} carries no command"),
    }
}

fn variant(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").chars().take_while(|c| c.is_alphanumeric()).collect()
}

#[test]
fn every_job_and_command_of_the_table_can_be_built() {
    let deduplicated = |mut paths: Vec<String>| {
        paths.dedup();
        paths
    };
    let built: BTreeMap<String, Vec<String>> = jobs()
        .into_iter()
        .map(|(job, here)| (job.to_owned(), deduplicated(here.iter().map(path_of_activation).collect())))
        .collect();
    assert_eq!(built, rows("The 16 jobs"));
    assert_eq!(built.len(), 16);

    let built: BTreeMap<String, Vec<String>> = commands()
        .into_iter()
        .map(|(command, here)| (command.to_owned(), deduplicated(here.iter().flat_map(paths_of_completion).collect())))
        .collect();
    assert_eq!(built, rows("The 22 commands"));
    assert_eq!(built.len(), 22);
}

/// Nothing of what can be built is lost on the way through a store.
#[test]
fn every_job_and_command_of_the_table_comes_back_from_both_forms_of_a_transcript() {
    let mut transcript = dacapo_core::Transcript::new("type", Default::default());
    for (_, activations) in jobs() {
        for activation in activations {
            let Activation::Turn(turn) = activation else { continue };
            let number = Some(transcript.turns.len() as u64);
            transcript.record(&turn, &TurnDone { number, ..TurnDone::default() }, &name("build"));
        }
    }
    for (_, completions) in commands() {
        for completion in completions {
            let Completion::Turn(done) = completion else { continue };
            let done = TurnDone { number: Some(transcript.turns.len() as u64), ..done };
            transcript.record(&dacapo_core::Turn::default(), &done, &name("build"));
        }
    }
    assert_eq!(dacapo_core::Transcript::from_bytes(&transcript.to_bytes()).as_ref(), Ok(&transcript));
    assert_eq!(dacapo_core::Transcript::from_text(&transcript.to_text()).as_ref(), Ok(&transcript));
    assert!(transcript.turns.len() > 38, "{} turns", transcript.turns.len());
}
