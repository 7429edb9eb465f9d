//! Searches: each finds the runs that meet it, in its order, whatever index a store answers it from.

use super::*;
use crate::ListPlace;
use crate::search::{conditions, matches};

const STATUSES: [Option<Status>; 4] =
    [None, Some(Status::Completed), Some(Status::Failed), Some(Status::ContinuedAsNew)];

/// Starts runs with attributes of all kinds: `customer` is a text or a list of them, `total` a number of either kind or a text.
fn runs(store: &dyn Store) {
    for number in 0..48_u64 {
        let name = |text: String| Name::from(text);
        let customer = ["ada", "bob", "adam", "2026-01-02"][(number % 4) as usize];
        let mut attributes = vec![(Name::from("paid"), AttributeValue::Bool(number.is_multiple_of(3)))];
        attributes.push(match number % 5 {
            0 => ("customer".into(), AttributeValue::Keywords(vec![customer.into(), "vip".into(), customer.into()])),
            1 => ("due".into(), AttributeValue::Time(at(100 * number))),
            _ => ("customer".into(), AttributeValue::Keyword(customer.into())),
        });
        attributes.extend(match number % 6 {
            0 => Some(("total".into(), AttributeValue::Int(number as i64 - 20))),
            1 => Some(("total".into(), AttributeValue::Float(number as f64 - 20.5))),
            2 => Some(("total".into(), AttributeValue::Keyword("much".into()))),
            3 => Some(("total".into(), AttributeValue::Int(i64::MAX))),
            _ => None,
        });
        let new = NewRun {
            run_id: name(format!("run-{number}")),
            workflow_id: name(format!("{}-{number}", ["order", "Order", "étude"][(number % 3) as usize])),
            workflow: ["checkout", "refund"][(number % 2) as usize].into(),
            // This node serves one of the queues, and writes no more to runs of the other.
            queue: if number % 14 == 7 { "eu" } else { "main" }.into(),
            // Clocks may be set back.
            started: at(1_000 - (number / 3) % 7),
            attributes,
            ..new_run("", "")
        };
        let run = start(store, new).unwrap().run;
        if number % 14 == 7 {
            continue;
        }
        own(store, run, Epoch::default(), FIRST).unwrap();
        let closed = at(2_000 + number % 11);
        if let Some(status) = STATUSES[(number % 7).min(3) as usize] {
            let taken = store.unseen(run).unwrap().iter().map(|message| message.no).collect();
            commit(store, TurnWrite { at: closed, close: closing(status), taken, ..turn(run, 0) }).unwrap();
        } else if number.is_multiple_of(2) {
            let cause = if number.is_multiple_of(4) { StuckCause::Panic } else { StuckCause::Nondeterminism };
            let (subject, reason) = ("a.rs:1:2".to_owned(), "it differs".to_owned());
            let stuck = Stuck { cause, subject, reason, since: at(3), attempts: 2, retry: at(9) };
            write(store, Write::SetStuck { run, epoch: FIRST, stuck: Some(stuck) }).unwrap();
        }
    }
}

/// Searches and how many of the runs meet them. Those of other columns and attributes are joined to each in the test.
const SEARCHES: [(&str, usize); 40] = [
    ("customer = 'ada'", 10),
    ("customer != 'ada'", 28),
    ("NOT customer = 'ada'", 28),
    ("customer = 'vip'", 10),
    ("customer = '2026-01-02'", 10),
    ("customer IN ('ada', 'bob', 'eve')", 19),
    ("customer NOT IN ('ada', 'bob')", 19),
    ("customer STARTS_WITH 'ada'", 19),
    ("NOT customer STARTS_WITH 'ada'", 19),
    ("customer > 'adam'", 16),
    ("customer BETWEEN 'ad' AND 'adb'", 19),
    ("customer NOT BETWEEN 'ad' AND 'adb'", 19),
    ("customer IS NULL", 10),
    ("customer IS NOT NULL", 38),
    ("customer = 7", 0),
    ("paid = true", 16),
    ("paid != true", 32),
    ("total = 4", 1),
    ("total = 4.0", 1),
    ("total > -1", 16),
    ("total >= 3.5", 16),
    ("total < 3.5", 8),
    ("total != 3.5", 32),
    ("total > 9300000000000000000.0", 0),
    ("total < 9300000000000000000.0", 24),
    ("total IN (4, 10, 16.0, 4.5, 'much')", 12),
    ("total BETWEEN -4 AND 4", 3),
    ("total BETWEEN 'm' AND 'n'", 8),
    ("due > '1970-01-01T00:30:00Z'", 6),
    ("due = '1970-01-01T00:10:00Z'", 1),
    ("due < '1970-01-01T00:10:00Z' OR customer = 'ada'", 11),
    ("(paid = true OR due IS NOT NULL) AND total IS NOT NULL", 19),
    ("customer = 'ada' OR total = 4 OR due = '1970-01-01T00:10:00Z'", 11),
    ("WorkflowId STARTS_WITH 'order'", 16),
    ("WorkflowId IN ('order-0', 'Order-1', 'none') OR RunId = 'run-7'", 3),
    ("WorkflowType != 'checkout' AND TaskQueue > 'eu'", 21),
    ("ExecutionStatus IN ('Running', 'Failed')", 14),
    ("StuckCause = 'panic' OR StuckCause IS NULL", 46),
    ("CloseTime > '1970-01-01T00:33:25Z'", 16),
    ("CloseTime IS NULL OR StartTime NOT BETWEEN '1970-01-01T00:16:35Z' AND '1970-01-01T00:16:38Z'", 28),
];

pub fn searches_find_the_runs_that_meet_them_and_no_others(store: &dyn Store) {
    runs(store);
    let all = store.list(&Filter::default(), None, 100).unwrap().into_iter();
    let all: Vec<_> = all.map(|row| (row.clone(), store.attributes(row.no).unwrap())).collect();
    assert_eq!(all.len(), 48);
    let filter = |text: String| Filter { search: Some(text.parse().unwrap()), ..Filter::default() };
    for (text, expected) in SEARCHES {
        assert_eq!(store.count(&filter(text.to_owned()), u64::MAX).unwrap(), expected as u64, "{text}");
        assert_eq!(store.count(&filter(text.to_owned()), 5).unwrap(), expected.min(5) as u64, "{text}");
        finds(store, &all, &filter(text.to_owned()));
    }
    for (place, (text, _)) in SEARCHES.into_iter().enumerate() {
        for other in [place, place + 3, place + 7] {
            let order = ORDERS[(place + other / 3) % ORDERS.len()];
            finds(store, &all, &filter(format!("({text}) AND {}{order}", OTHERS[other % OTHERS.len()])));
        }
    }
}

/// Each leads to another index.
const OTHERS: [&str; 10] = [
    "WorkflowType = 'checkout'",
    "ExecutionStatus = 'Running'",
    "ExecutionStatus = 'Failed'",
    "customer = 'ada'",
    "customer STARTS_WITH 'ad'",
    "total > 0",
    "StuckCause IS NOT NULL",
    "WorkflowId STARTS_WITH 'order'",
    "StartTime <= '1970-01-01T00:16:36Z'",
    "CloseTime > '1970-01-01T00:33:24Z'",
];

const ORDERS: [&str; 5] =
    ["", " ORDER BY StartTime", " ORDER BY StartTime DESC", " ORDER BY CloseTime", " ORDER BY CloseTime DESC"];

/// Checks a list against all runs, as a whole and in pages.
fn finds(store: &dyn Store, all: &[(RunRow, Vec<(Name, AttributeValue)>)], filter: &Filter) {
    let what = filter.search.as_ref().unwrap().text();
    let asked = conditions(filter);
    let by_close = what.contains("ORDER BY CloseTime");
    let is_met = |(row, attributes): &&(RunRow, Vec<(Name, AttributeValue)>)| {
        asked.iter().all(|condition| matches(condition, row, attributes)) && (!by_close || row.closed.is_some())
    };
    let expected: Vec<&RunRow> = all.iter().filter(is_met).map(|(row, _)| row).collect();
    let found = store.list(filter, None, 100).unwrap();
    let numbers = |rows: &mut dyn Iterator<Item = RunNo>| rows.collect::<std::collections::BTreeSet<_>>();
    assert_eq!(found.len(), expected.len(), "{what}");
    assert_eq!(numbers(&mut found.iter().map(|row| row.no)), numbers(&mut expected.iter().map(|row| row.no)), "{what}");
    let place = |row: &RunRow| ListPlace::of(filter, row.no, row.started, row.closed);
    let keys: Vec<_> = found.iter().map(|row| (place(row).time, row.no)).collect();
    let ascends = what.ends_with("ORDER BY StartTime") || what.ends_with("ORDER BY CloseTime");
    assert!(keys.is_sorted_by(|one, other| if ascends { one < other } else { one > other }), "{what}: {keys:?}");
    let mut pages = Vec::new();
    while let Some(page) = Some(store.list(filter, pages.last().map(place), 7).unwrap()).filter(|page| !page.is_empty())
    {
        pages.extend(page);
    }
    assert_eq!(pages, found, "{what}");
}

pub fn workflows_of_runs_are_listed_once(store: &dyn Store) {
    assert_eq!(store.workflows().unwrap(), Vec::<Name>::new());
    runs(store);
    assert_eq!(store.workflows().unwrap(), ["checkout", "refund"]);
}
