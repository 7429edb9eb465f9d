//! A search in the server's own language.

use dacapo_client::{Condition, Field, Literal, Test};

use crate::convert::status_to_word;

/// Writes a condition. None: it asks why runs are stuck, which the server's lists do not know.
pub(super) fn written(condition: &Condition) -> Option<String> {
    let all = |parts: &[Condition], between: &str| {
        let parts: Option<Vec<String>> = parts.iter().map(written).collect();
        Some(format!("({})", parts?.join(between)))
    };
    match condition {
        Condition::All(parts) => all(parts, " AND "),
        Condition::Any(parts) => all(parts, " OR "),
        Condition::Is(Field::StuckCause, _) => None,
        Condition::Is(field, test) => Some(format!("{} {}", name(field), passes(test))),
    }
}

fn name(field: &Field) -> String {
    match field {
        Field::Attribute(name) => format!("`{name}`"),
        built_in => built_in.to_string(),
    }
}

fn passes(test: &Test) -> String {
    let list = |values: &[Literal]| values.iter().map(value).collect::<Vec<_>>().join(", ");
    match test {
        Test::Compare(comparison, literal) => format!("{} {}", comparison.sign(), value(literal)),
        Test::In(values) => format!("IN ({})", list(values)),
        Test::NotIn(values) => format!("NOT IN ({})", list(values)),
        Test::Between(low, high) => format!("BETWEEN {} AND {}", value(low), value(high)),
        Test::NotBetween(low, high) => format!("NOT BETWEEN {} AND {}", value(low), value(high)),
        Test::StartsWith(start) => format!("STARTS_WITH {}", quoted(start)),
        Test::NotStartsWith(start) => format!("NOT STARTS_WITH {}", quoted(start)),
        Test::IsNull => "IS NULL".to_owned(),
        Test::IsNotNull => "IS NOT NULL".to_owned(),
    }
}

fn value(literal: &Literal) -> String {
    match literal {
        Literal::Int(_) | Literal::Float(_) | Literal::Bool(_) => literal.to_string(),
        Literal::Status(status) => quoted(status_to_word(*status)),
        other => quoted(&other.to_string()),
    }
}

/// A text as a value of the language, whatever is in it.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use dacapo_client::Search;

    use super::*;

    fn sent(text: &str) -> Option<String> {
        written(text.parse::<Search>().unwrap().condition().unwrap())
    }

    #[test]
    fn search_is_written_in_the_words_of_the_server() {
        let written = sent(
            "NOT (WorkflowType = \"o'clock\" OR ExecutionStatus IN ('cancelled', 'open')) AND `a b` >= 2.0 AND c = true",
        );
        assert_eq!(
            written.unwrap(),
            "((WorkflowType != 'o\\'clock' AND ExecutionStatus NOT IN ('Canceled', 'Running')) AND `a b` >= 2.0 AND `c` = true)"
        );
        let written = sent(
            "StartTime BETWEEN '2026-01-01' AND '2026-02-01' AND WorkflowId STARTS_WITH 'a' AND CloseTime IS NULL",
        );
        assert_eq!(
            written.unwrap(),
            "(StartTime BETWEEN '2026-01-01T00:00:00Z' AND '2026-02-01T00:00:00Z' AND WorkflowId STARTS_WITH 'a' AND CloseTime IS NULL)"
        );
    }

    #[test]
    fn cause_of_stuck_runs_cannot_be_asked_for() {
        assert_eq!(sent("a = 1 OR StuckCause = 'panic'"), None);
    }
}
