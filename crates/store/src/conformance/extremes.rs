//! Values, sizes and numbers at their limits, and writes that come again.

use super::*;

/// Larger than one page of any database, and than one packet.
const LARGE: usize = 2 << 20;

/// Letters of several scripts, one beyond the first 65,536, one that is composed, and signs that mean something to SQL.
const TEXT: &str = "Ærø 注文 🦀 e\u{301} \u{202e}'\"\\%_;--";

fn large(seed: u8) -> Vec<u8> {
    (0..LARGE).map(|at| (at as u8).wrapping_mul(31) ^ seed).collect()
}

fn sent(store: &dyn Store, run: RunNo, key: &str, job: Vec<u8>) -> MessageNo {
    let message = NewMessage { key: key.to_owned().into(), sent: at(2), job };
    match write(store, Write::Send { run, message, ended: None }).unwrap() {
        Written::Sent(sent) => sent.no,
        other => panic!("a message was answered with {other:?}"),
    }
}

pub fn records_and_messages_of_two_mebibytes_are_kept_whole(store: &dyn Store) {
    let started = owned(store, "order-1", "run-1");
    let run = started.run;
    let no = sent(store, run, "large", large(1));
    assert_eq!(store.message(run, "large").unwrap().unwrap().job, large(1));
    let outcomes = vec![("large".into(), large(2))];
    let memo = Some(large(3));
    let taken: Vec<MessageNo> = started.message.into_iter().chain([no]).collect();
    let close = Some(Closing { result: large(4), ..closing(Status::Completed).unwrap() });
    commit(store, TurnWrite { record: large(5), taken, outcomes, memo, close, ..turn(run, 0) }).unwrap();
    assert!(records(store, run) == [(0, large(5))]);
    assert!(store.message(run, "large").unwrap().unwrap().outcome == Some(large(2)));
    let row = store.run(run).unwrap().unwrap();
    assert!(row.memo == large(3) && row.result == Some(large(4)));
}

pub fn ids_and_text_of_any_script_are_kept(store: &dyn Store) {
    let new = NewRun {
        run_id: format!("run {TEXT}").into(),
        workflow_id: format!("id {TEXT}").into(),
        workflow: format!("type {TEXT}").into(),
        request: Some(format!("request {TEXT}").into()),
        attributes: vec![("note".into(), AttributeValue::Keyword(TEXT.into()))],
        ..new_run("", "")
    };
    let run = start(store, new.clone()).unwrap().run;
    let row = store.find(&format!("id {TEXT}"), Some(&format!("run {TEXT}"))).unwrap().unwrap();
    assert_eq!(
        (row.no, &row.run_id, &row.workflow_id, &row.workflow),
        (run, &new.run_id, &new.workflow_id, &new.workflow)
    );
    assert!(!start(store, NewRun { run_id: "other".into(), ..new.clone() }).unwrap().fresh, "the request is known");
    assert_eq!(store.attributes(run).unwrap(), new.attributes);
    let filter = Filter { workflow: Some(new.workflow.clone()), ..Filter::default() };
    assert_eq!(store.count(&filter, u64::MAX).unwrap(), 1);
    sent(store, run, TEXT, vec![1]);
    assert!(store.message(run, TEXT).unwrap().is_some());
    assert_eq!(store.find(&format!("id {}", TEXT.to_lowercase()), None).unwrap(), None, "letters are compared exactly");
    assert_eq!(store.find("id %", None).unwrap(), None);
}

/// Text of an error may have any character. A store that cannot keep one keeps the rest.
pub fn a_nul_in_the_text_of_an_error_does_no_harm(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let stuck = Stuck {
        cause: StuckCause::Panic,
        subject: "a\0.rs:1:2".to_owned(),
        reason: "before\0after".to_owned(),
        since: at(3),
        attempts: 2,
        retry: at(9),
    };
    write(store, Write::SetStuck { run, epoch: FIRST, stuck: Some(stuck) }).unwrap();
    let kept = store.run(run).unwrap().unwrap().stuck.unwrap();
    assert!(kept.reason.starts_with("before") && kept.reason.ends_with("after"), "{kept:?}");
    let record = b"\0record\0".to_vec();
    commit(store, TurnWrite { record: record.clone(), ..turn(run, 0) }).unwrap();
    assert_eq!(records(store, run), [(0, record)]);
}

/// The engine hands in again what it does not know to be committed, as after a lost answer.
pub fn writes_that_come_again_together_change_nothing(store: &dyn Store) {
    let (one, two) = (owned(store, "order-1", "run-1").run, owned(store, "order-2", "run-2").run);
    let new = NewRun { request: Some("request-3".into()), ..new_run("order-3", "run-3") };
    let message = NewMessage { key: "signal:1".into(), sent: at(2), job: vec![7] };
    let timers = vec![(at(9), TimerKind::Sleep(Seq(1)))];
    let writes = || {
        vec![
            Write::Turn(Box::new(TurnWrite { tasks: vec![task()], timers: timers.clone(), ..turn(one, 0) })),
            Write::Send { run: two, message: message.clone(), ended: None },
            Write::Start(Box::new(new.clone())),
            Write::Turn(Box::new(turn(two, 0))),
        ]
    };
    let submit = |writes: Vec<Write>| {
        let (told, answers) = mpsc::channel();
        let count = writes.len();
        for (place, write) in writes.into_iter().enumerate() {
            let told = told.clone();
            store.submit(write, Box::new(move |written| drop(told.send((place, written)))));
        }
        let mut answers: Vec<_> = (0..count).map(|_| answers.recv().expect("every write is answered")).collect();
        answers.sort_by_key(|(place, _)| *place);
        answers.into_iter().map(|(_, answer)| answer.unwrap()).collect::<Vec<_>>()
    };
    let first = submit(writes());
    let kept = |store: &dyn Store| {
        let runs = store.list(&Filter::default(), None, 10).unwrap();
        let tasks =
            [one, two].map(|run| (store.tasks_of(run).unwrap(), store.unseen(run).unwrap(), records(store, run)));
        (runs, tasks, store.due(at(100), 10).unwrap())
    };
    let before = kept(store);
    assert_eq!((before.0.len(), before.1[0].0.len(), before.2.len()), (3, 1, 1));
    let again = submit(writes());
    assert_eq!(kept(store), before);
    match (&first[1..3], &again[1..3]) {
        (
            [Written::Sent(sent), Written::Started { run, .. }],
            [Written::Sent(sent_again), Written::Started { run: run_again, .. }],
        ) => {
            assert_eq!((sent.no, sent.fresh, sent_again.no, sent_again.fresh), (sent.no, true, sent.no, false));
            assert_eq!((run.fresh, run_again.run, run_again.fresh), (true, run.run, false));
        }
        answers => panic!("the writes were answered with {answers:?}"),
    }
}

pub fn messages_are_read_in_the_order_in_which_they_were_stored(store: &dyn Store) {
    let run = owned(store, "order-1", "run-1").run;
    let mut numbers = Vec::new();
    let mut keys = vec![Name::from("start")];
    for number in 0..40 {
        // Neither the order of keys nor that of times.
        let key = format!("signal:{}", (number * 7) % 40);
        let message = NewMessage { key: key.clone().into(), sent: at(100 - number), job: vec![number as u8] };
        match write(store, Write::Send { run, message, ended: None }).unwrap() {
            Written::Sent(sent) => numbers.push(sent.no),
            other => panic!("a message was answered with {other:?}"),
        }
        keys.push(key.into());
    }
    assert!(numbers.is_sorted(), "{numbers:?}");
    assert_eq!(store.unseen(run).unwrap().into_iter().map(|message| message.key).collect::<Vec<_>>(), keys);
}

pub fn pages_end_where_the_next_begins(store: &dyn Store) {
    let ids: [(&'static str, &'static str); 6] =
        [("a", "run-1"), ("b", "run-2"), ("c", "run-3"), ("d", "run-4"), ("e", "run-5"), ("f", "run-6")];
    let mut runs: Vec<RunNo> = ids.iter().map(|(workflow_id, run_id)| owned(store, workflow_id, run_id).run).collect();
    let mut tasks = Vec::new();
    for run in &runs {
        tasks.extend(commit(store, TurnWrite { tasks: vec![task()], ..turn(*run, 0) }).unwrap().tasks);
    }
    let all = Filter::default();
    let no = |rows: Vec<RunRow>| rows.iter().map(|row| row.no).collect::<Vec<_>>();
    let newest = |before: Option<RunNo>, limit| no(store.list(&all, before.map(Into::into), limit).unwrap());
    let oldest = |after, limit| no(store.oldest(&all, after, limit).unwrap());
    let queue = [Name::from("main")];
    let page = |above, limit| store.tasks(&queue, above, limit).unwrap().iter().map(|task| task.no).collect::<Vec<_>>();
    for size in 1..=7 {
        let (mut found, mut last) = (Vec::new(), None);
        loop {
            let page = oldest(last, size);
            assert!(page.len() <= size);
            let Some(end) = page.last() else { break };
            last = Some(*end);
            found.extend(page);
        }
        assert_eq!(found, runs, "pages of {size}");
        let (mut found, mut above) = (Vec::new(), 0);
        loop {
            let page = page(above, size);
            assert!(page.len() <= size);
            let Some(end) = page.last() else { break };
            above = end.0;
            found.extend(page);
        }
        assert_eq!(found, tasks, "pages of {size}");
    }
    assert_eq!((oldest(None, 6), oldest(None, 0), oldest(Some(runs[5]), 9)), (runs.clone(), Vec::new(), Vec::new()));
    assert_eq!(page(tasks[5].0, 9), Vec::new());
    runs.reverse();
    for size in 1..=7 {
        let (mut found, mut last) = (Vec::new(), None);
        loop {
            let page = newest(last, size);
            assert_eq!(store.numbers(last, size).unwrap(), page);
            let Some(end) = page.last() else { break };
            last = Some(*end);
            found.extend(page);
        }
        assert_eq!(found, runs, "pages of {size}");
    }
}

pub fn ten_thousand_tasks_of_one_turn_are_committed_together(store: &dyn Store) {
    const COUNT: u64 = 10_000;
    let run = owned(store, "order-1", "run-1").run;
    let tasks = (0..COUNT).map(|seq| NewTask { seq: Seq(seq), position: seq as u32, ..task() }).collect();
    let timers: Vec<_> = (0..COUNT).map(|seq| (at(5), TimerKind::ScheduleToClose(Seq(seq)))).collect();
    let written = commit(store, TurnWrite { tasks, timers: timers.clone(), ..turn(run, 0) }).unwrap();
    assert!(written.tasks.is_sorted() && written.tasks.len() == COUNT as usize);
    let rows = store.tasks_of(run).unwrap();
    assert!(rows.iter().zip(0..).all(|(row, seq)| (row.seq, row.no) == (Seq(seq), written.tasks[seq as usize])));
    assert_eq!((rows.len(), store.due(at(5), usize::MAX >> 1).unwrap().len()), (COUNT as usize, COUNT as usize));
    let ended_activities = (1..COUNT).map(Seq).collect();
    let ended_timers = timers[1..].to_vec();
    commit(store, TurnWrite { ended_activities, ended_timers, ..turn(run, 1) }).unwrap();
    assert_eq!((store.tasks_of(run).unwrap().len(), store.due(at(5), 10).unwrap().len()), (1, 1));
}

/// The clocks of machines differ, and one may be wrong by years. Only the order of timers follows from times.
pub fn moments_of_another_clock_are_kept_as_they_are(store: &dyn Store) {
    let (past, future) = (Timestamp(1), Timestamp::from_millis(9_000_000_000_000));
    let new = NewRun { started: future, ..new_run("order-1", "run-1") };
    let started = start(store, new).unwrap();
    let run = started.run;
    own(store, run, Epoch::default(), FIRST).unwrap();
    let message = NewMessage { key: "signal:1".into(), sent: past, job: vec![7] };
    write(store, Write::Send { run, message, ended: None }).unwrap();
    let sent: Vec<Timestamp> = store.unseen(run).unwrap().iter().map(|message| message.sent).collect();
    assert_eq!(sent, [future, past], "what was stored first comes first");
    let timers =
        vec![(future, TimerKind::Sleep(Seq(1))), (past, TimerKind::Sleep(Seq(2))), (Timestamp(0), TimerKind::Retry)];
    let ready = NewTask { ready: future, ..task() };
    commit(store, TurnWrite { at: future, timers, tasks: vec![ready], ..turn(run, 0) }).unwrap();
    commit(store, TurnWrite { at: past, ..turn(run, 1) }).unwrap();
    let due = |until| store.due(until, 10).unwrap().iter().map(|timer| timer.due).collect::<Vec<_>>();
    assert_eq!((due(Timestamp(0)), due(past)), (vec![Timestamp(0)], vec![Timestamp(0), past]));
    assert_eq!(due(future), [Timestamp(0), past, future]);
    assert_eq!(store.tasks_of(run).unwrap()[0].ready, future);
    assert_eq!(store.next_due().unwrap(), Some(Timestamp(0)));
    let taken = store.unseen(run).unwrap().iter().map(|message| message.no).collect();
    commit(store, TurnWrite { at: past, taken, close: closing(Status::Completed), ..turn(run, 2) }).unwrap();
    let row = store.run(run).unwrap().unwrap();
    assert_eq!((row.started, row.closed), (future, Some(past)), "it closed before it began");
    assert_eq!(store.closed_before(Timestamp(2), 10).unwrap(), [run]);
}
