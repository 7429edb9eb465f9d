//! What is read, and where the errors point.

use dacapo_core::{Timestamp, parse_timestamp};

use super::*;
use crate::{Status, StuckCause};

fn parsed(text: &str) -> Condition {
    text.parse::<Search>().unwrap_or_else(|error| panic!("{error}")).condition().unwrap().clone()
}

fn attribute(name: &'static str) -> Field {
    Field::Attribute(name.into())
}

fn is(field: Field, comparison: Comparison, value: Literal) -> Condition {
    Condition::Is(field, Test::Compare(comparison, value))
}

fn text(text: &str) -> Literal {
    Literal::Text(text.to_owned())
}

fn at(text: &str) -> Timestamp {
    parse_timestamp(text).unwrap()
}

#[test]
fn and_binds_closer_than_or_and_brackets_closer_than_both() {
    let one = |name| is(attribute(name), Comparison::Equal, Literal::Int(1));
    let [a, b, c] = ["a", "b", "c"].map(one);
    let all = Condition::All(vec![b.clone(), c.clone()]);
    assert_eq!(parsed("a = 1 OR b = 1 AND c = 1"), Condition::Any(vec![a.clone(), all]));
    let any = Condition::Any(vec![a, b]);
    assert_eq!(parsed("(a = 1 or b = 1) and c = 1"), Condition::All(vec![any, c]));
}

#[test]
fn negation_is_moved_into_the_tests() {
    let condition = parsed("NOT (a = 1 OR NOT b IN ('x') AND c < 2)");
    let Condition::All(parts) = condition else { panic!("{condition:?}") };
    assert_eq!(parts[0], is(attribute("a"), Comparison::NotEqual, Literal::Int(1)));
    let b = Condition::Is(attribute("b"), Test::In(vec![text("x")]));
    let c = is(attribute("c"), Comparison::AtLeast, Literal::Int(2));
    assert_eq!(parts[1], Condition::Any(vec![b, c]));
}

#[test]
fn every_test_is_read_with_the_values_of_its_field() {
    assert_eq!(parsed("WorkflowType = 'it''s'"), is(Field::WorkflowType, Comparison::Equal, text("it's")));
    assert_eq!(parsed("WorkflowId != \"a\\\"b\""), is(Field::WorkflowId, Comparison::NotEqual, text("a\"b")));
    let running = Literal::Status(Status::Open);
    for word in ["'Running'", "'open'"] {
        assert_eq!(
            parsed(&format!("ExecutionStatus={word}")),
            is(Field::ExecutionStatus, Comparison::Equal, running.clone())
        );
    }
    for (word, status) in
        [("'Canceled'", Status::Cancelled), ("'cancelled'", Status::Cancelled), ("'timed out'", Status::TimedOut)]
    {
        let expected = Condition::Is(Field::ExecutionStatus, Test::NotIn(vec![Literal::Status(status)]));
        assert_eq!(parsed(&format!("ExecutionStatus NOT IN ({word})")), expected);
    }
    let between = Test::Between(Literal::Time(at("2026-01-01")), Literal::Time(at("2026-02-01T12:00:00Z")));
    assert_eq!(
        parsed("StartTime BETWEEN '2026-01-01' AND '2026-02-01T13:00:00+01:00'"),
        Condition::Is(Field::StartTime, between)
    );
    assert_eq!(parsed("CloseTime IS NULL"), Condition::Is(Field::CloseTime, Test::IsNull));
    assert_eq!(parsed("`Close Time` IS NOT NULL"), Condition::Is(attribute("Close Time"), Test::IsNotNull));
    assert_eq!(
        parsed("TaskQueue STARTS_WITH 'eu-'"),
        Condition::Is(Field::TaskQueue, Test::StartsWith("eu-".to_owned()))
    );
    let cause = Literal::Cause(StuckCause::Nondeterminism);
    assert_eq!(parsed("StuckCause = 'nondeterminism'"), is(Field::StuckCause, Comparison::Equal, cause));
    assert_eq!(parsed("order.total >= -2.5"), is(attribute("order.total"), Comparison::AtLeast, Literal::Float(-2.5)));
    assert_eq!(parsed("paid = TRUE"), is(attribute("paid"), Comparison::Equal, Literal::Bool(true)));
}

#[test]
fn order_follows_the_condition_or_stands_alone() {
    let order = |text: &str| text.parse::<Search>().unwrap().order();
    assert_eq!(order(""), Order::Newest);
    assert_eq!(order("a = 1 ORDER BY StartTime"), Order::StartTime { descending: false });
    assert_eq!(order("order by CloseTime desc"), Order::CloseTime { descending: true });
    assert_eq!(order("ORDER BY CloseTime ASC"), Order::CloseTime { descending: false });
}

#[test]
fn errors_point_at_the_column_and_say_what_to_write() {
    let all = [
        ("WorkflowType = checkout", 16, "`checkout` is no value: put text in single quotes, 'checkout'"),
        ("workflowtype = 'a'", 1, "`workflowtype` is not known: write WorkflowType; or"),
        ("WorkflowTyp = 'a'", 1, "write WorkflowType"),
        ("a = 1 AND", 10, "expected a field, found the end of the text"),
        ("a = 1 b = 2", 7, "`b` cannot follow here: expected AND, OR, ORDER BY or the end"),
        ("a == 1", 3, "`==` is not known: write `=`"),
        ("a <> 1", 3, "`<>` is not known: write `!=`"),
        ("a LIKE 'x%'", 3, "`LIKE` is not known: STARTS_WITH 'eu-' finds texts that begin so"),
        ("a = NULL", 5, "nothing equals NULL: write IS NULL"),
        ("a = 'x", 5, "this ' has no other one: end the text with it"),
        ("(a = 1", 7, "expected `)`, found the end of the text"),
        ("a IN ()", 7, "expected a value of `a`, found `)`"),
        ("a BETWEEN 1, 2", 12, "expected AND, found `,`"),
        ("a = 2026-01-01", 5, "`2026-01-01` is no number: put text and moments in single quotes, '2026-01-01'"),
        ("StartTime > 'yesterday'", 13, "'yesterday' is no moment: write it as '2026-02-28T09:30:00Z' or '2026-02-28'"),
        ("ExecutionStatus = 'done'", 19, "'done' is no status: Running, Completed, Failed, Canceled"),
        ("ExecutionStatus = 'stuck'", 19, "A run that is stuck is open: write StuckCause IS NOT NULL"),
        ("ExecutionStatus > 'Running'", 17, "ExecutionStatus has no order: compare by =, != or IN"),
        ("StuckCause = 'bug'", 14, "'bug' is no cause: nondeterminism, double_play"),
        ("StartTime STARTS_WITH '2026'", 11, "StartTime is no text: STARTS_WITH compares texts"),
        ("WorkflowId STARTS_WITH 7", 24, "STARTS_WITH needs a text in single quotes, found the number 7"),
        ("WorkflowId = 7", 14, "WorkflowId is no number: put its value in single quotes"),
        ("WorkflowId IS NULL", 1, "WorkflowId is never null: every run has one"),
        ("ORDER BY WorkflowId", 10, "runs cannot be ordered by WorkflowId: order them by StartTime or CloseTime"),
        ("`` = 1", 1, "no attribute has an empty name"),
        ("a = 'x\0'", 7, "the character NUL"),
        ("grüße = 'ä' AND §", 17, "'§' means nothing here"),
    ];
    for (text, column, problem) in all {
        let error = text.parse::<Search>().unwrap_err();
        assert_eq!((error.column, error.text.as_str()), (column, text), "{error}");
        assert!(error.problem.contains(problem), "{text}: {}", error.problem);
    }
    assert_eq!(
        "a = x".parse::<Search>().unwrap_err().to_string(),
        "cannot read the search at column 5: `x` is no value: put text in single quotes, 'x'\n  a = x\n      ^"
    );
}

#[test]
fn searches_that_no_database_could_take_are_refused() {
    let deep = format!("{}a = 1{}", "(".repeat(33), ")".repeat(33));
    assert!(deep.parse::<Search>().unwrap_err().problem.contains("more than 32 brackets"));
    let many = format!("a IN ({})", vec!["1"; 501].join(", "));
    assert!(many.parse::<Search>().unwrap_err().problem.contains("more than 500 values"));
    assert!("x".repeat(20_000).parse::<Search>().unwrap_err().problem.contains("at most 16384"));
}

#[test]
fn search_is_its_text_on_the_wire() {
    let search: Search = "a = 1 ORDER BY StartTime".parse().unwrap();
    let json = serde_json::to_value(&search).unwrap();
    assert_eq!(json, "a = 1 ORDER BY StartTime");
    assert_eq!(serde_json::from_value::<Search>(json).unwrap(), search);
    assert!(serde_json::from_str::<Search>("\"a = \"").unwrap_err().to_string().contains("column 5"));
}
