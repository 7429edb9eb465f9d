//! A filter as SQL. All values are bound; only codes of statuses and causes are in the text, so that partial indexes can be used.

use dacapo_client::{Comparison, Condition, Field, Filter, Literal, Order, Status, Test};
use dacapo_core::Name;

use super::ListPlace;
use super::conditions::{asks_for, conditions, order};
use super::driver::Driver;
use super::value::{Column, SqlValue, comparisons, moment};
use crate::RunNo;

/// How a database writes what databases write in different ways.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The character before the number of a bound value.
    pub placeholder: char,
    /// The column of an attribute that holds a text.
    pub word: &'static str,
    /// A join whose left side is read first.
    pub join: &'static str,
    /// The prefix that keeps a column out of the choice of an index.
    pub without_index: &'static str,
}

/// A query and the values that it binds, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlQuery {
    /// The text.
    pub text: String,
    /// The values of its placeholders.
    pub values: Vec<SqlValue>,
}

impl Dialect {
    /// Lists runs in the order of the filter, after this place.
    pub fn list(&self, filter: &Filter, columns: &str, after: Option<ListPlace>, limit: usize) -> SqlQuery {
        let mut writer = Writer::new(*self, filter);
        let (selected, by) = writer.selected();
        let (key, sign, direction) = match writer.order {
            Order::Newest => (String::new(), "<", " DESC"),
            Order::StartTime { descending } => ("started".to_owned(), sign(descending), direction(descending)),
            Order::CloseTime { descending } => ("closed".to_owned(), sign(descending), direction(descending)),
        };
        let after = after.map(|ListPlace { no, time }| match key.is_empty() {
            true => format!(" AND {by} {sign} {}", writer.bind(SqlValue::Int(no.0))),
            false => {
                let (time, no) = (writer.bind(moment(time)), writer.bind(SqlValue::Int(no.0)));
                match writer.driver == Driver::Order {
                    true => format!(" AND (runs.{key}, {by}) {sign} ({time}, {no})"),
                    false => format!(" AND ({}runs.{key}, {by}) {sign} ({time}, {no})", self.without_index),
                }
            }
        });
        let after = after.unwrap_or_default();
        // The index of the order is the wrong one if another leaves fewer runs to sort.
        let plain = if writer.driver == Driver::Order { "" } else { self.without_index };
        let first = if key.is_empty() { String::new() } else { format!("{plain}runs.{key}{direction}, ") };
        let limit = writer.bind(SqlValue::Int(limit as i64));
        let text = format!("SELECT {columns} FROM {selected}{after} ORDER BY {first}{by}{direction} LIMIT {limit}");
        SqlQuery { text, values: writer.values }
    }

    /// Lists runs in the order of their numbers, above this one.
    pub fn oldest(&self, filter: &Filter, columns: &str, after: Option<RunNo>, limit: usize) -> SqlQuery {
        let mut writer = Writer::new(*self, filter);
        writer.order = Order::Newest;
        let (selected, by) = writer.selected();
        let after = writer.bind(SqlValue::Int(after.map_or(i64::MIN, |after| after.0)));
        let limit = writer.bind(SqlValue::Int(limit as i64));
        let text = format!("SELECT {columns} FROM {selected} AND {by} > {after} ORDER BY {by} LIMIT {limit}");
        SqlQuery { text, values: writer.values }
    }

    /// Counts runs, and stops at this many.
    pub fn count(&self, filter: &Filter, most: u64) -> SqlQuery {
        let mut writer = Writer::new(*self, filter);
        let (selected, _) = writer.selected();
        let limit = writer.bind(SqlValue::Int(i64::try_from(most).unwrap_or(i64::MAX)));
        let text = format!("SELECT count(*) FROM (SELECT 1 FROM {selected} LIMIT {limit}) AS found");
        SqlQuery { text, values: writer.values }
    }
}

const fn sign(descending: bool) -> &'static str {
    if descending { "<" } else { ">" }
}

const fn direction(descending: bool) -> &'static str {
    if descending { " DESC" } else { "" }
}

struct Writer {
    dialect: Dialect,
    conditions: Vec<Condition>,
    order: Order,
    driver: Driver,
    values: Vec<SqlValue>,
}

impl Writer {
    fn new(dialect: Dialect, filter: &Filter) -> Self {
        let conditions = conditions(filter);
        let order = order(filter, &conditions);
        let driver = Driver::of(&conditions, order);
        Self { dialect, conditions, order, driver, values: Vec::new() }
    }

    fn bind(&mut self, value: SqlValue) -> String {
        self.values.push(value);
        format!("{}{}", self.dialect.placeholder, self.values.len())
    }

    /// Returns the tables with all conditions, and the column that has the run's number.
    fn selected(&mut self) -> (String, &'static str) {
        self.driver = Driver::of(&self.conditions, self.order);
        let conditions = std::mem::take(&mut self.conditions);
        let mut terms = Vec::new();
        let (mut tables, mut by) = ("runs".to_owned(), "runs.no");
        for (place, condition) in conditions.iter().enumerate() {
            match (self.driver, condition) {
                (Driver::Attribute(first), Condition::Is(Field::Attribute(name), test)) if first == place => {
                    (tables, by) =
                        (format!("attributes AS one {} runs ON runs.no = one.run", self.dialect.join), "one.run");
                    let name = self.bind(SqlValue::Text(name.to_string()));
                    let rows = self.rows("one", test).join(" OR ");
                    terms.push(format!("one.name = {name} AND {rows}"));
                    // A list may have the same keyword twice.
                    let word = self.dialect.word;
                    terms.push(format!(
                        "one.place = (SELECT min(place) FROM attributes WHERE run = one.run AND name = one.name AND {word} = one.{word})"
                    ));
                }
                (Driver::Attributes(first), condition) if first == place => {
                    let lists = self.lists(condition).join(" UNION ALL ");
                    terms.push(format!("runs.no IN ({lists})"));
                }
                (_, condition) => terms.push(self.term(condition)),
            }
        }
        if self.driver == Driver::Ended {
            terms.push(format!("runs.status > {}", Status::Completed.code()));
        }
        // Rows without the moment are not in its index.
        if matches!(self.order, Order::CloseTime { .. }) {
            terms.push("runs.closed IS NOT NULL".to_owned());
        }
        self.conditions = conditions;
        match terms.is_empty() {
            true => (format!("{tables} WHERE 1 = 1"), by),
            false => (format!("{tables} WHERE {}", terms.join(" AND ")), by),
        }
    }

    fn term(&mut self, condition: &Condition) -> String {
        match condition {
            Condition::All(parts) => self.terms(parts, " AND "),
            Condition::Any(parts) => self.terms(parts, " OR "),
            Condition::Is(Field::Attribute(name), test) => self.attribute(name, test),
            Condition::Is(field, test) => {
                let is_open = asks_for(condition, |status| status == Status::Open);
                let uses_index = self.driver.uses(field, self.order)
                    || is_open && matches!(self.driver, Driver::Id | Driver::Open)
                    || *field == Field::StuckCause;
                let plain = if uses_index { "" } else { self.dialect.without_index };
                self.column(&format!("{plain}runs.{}", column(field)), test)
            }
        }
    }

    fn terms(&mut self, parts: &[Condition], between: &str) -> String {
        let parts: Vec<String> = parts.iter().map(|part| self.term(part)).collect();
        format!("({})", parts.join(between))
    }

    fn column(&mut self, column: &str, test: &Test) -> String {
        let mut value = |literal: &Literal| match literal {
            Literal::Status(status) => status.code().to_string(),
            Literal::Cause(cause) => cause.code().to_string(),
            Literal::Time(time) => self.bind(moment(*time)),
            other => self.bind(SqlValue::Text(other.to_string())),
        };
        match test {
            Test::Compare(comparison, literal) => format!("{column} {} {}", comparison.sign(), value(literal)),
            Test::In(all) => format!("{column} IN ({})", all.iter().map(value).collect::<Vec<_>>().join(", ")),
            Test::NotIn(all) => format!("{column} NOT IN ({})", all.iter().map(value).collect::<Vec<_>>().join(", ")),
            Test::Between(low, high) => format!("{column} BETWEEN {} AND {}", value(low), value(high)),
            Test::NotBetween(low, high) => format!("{column} NOT BETWEEN {} AND {}", value(low), value(high)),
            Test::StartsWith(start) => self.starts_with(column, start),
            Test::NotStartsWith(start) => format!("NOT ({})", self.starts_with(column, start)),
            Test::IsNull => format!("{column} IS NULL"),
            _ => format!("{column} IS NOT NULL"),
        }
    }

    fn starts_with(&mut self, column: &str, start: &str) -> String {
        let from = self.bind(SqlValue::Text(start.to_owned()));
        match after_all_that_start_with(start) {
            Some(end) => format!("{column} >= {from} AND {column} < {}", self.bind(SqlValue::Text(end))),
            None => format!("{column} >= {from}"),
        }
    }

    /// An attribute of a run that is looked at anyway.
    fn attribute(&mut self, name: &Name, test: &Test) -> String {
        let negative = matches!(
            test,
            Test::Compare(Comparison::NotEqual, _) | Test::NotIn(_) | Test::NotBetween(..) | Test::NotStartsWith(_)
        );
        match test {
            Test::IsNull => format!("NOT {}", self.exists(name, None)),
            Test::IsNotNull => self.exists(name, None),
            _ if negative => {
                let (there, passes) = (self.exists(name, None), self.exists(name, Some(&test.clone().negated())));
                format!("({there} AND NOT {passes})")
            }
            _ => self.exists(name, Some(test)),
        }
    }

    fn exists(&mut self, name: &Name, test: Option<&Test>) -> String {
        let name = self.bind(SqlValue::Text(name.to_string()));
        let rows = test.map(|test| format!(" AND ({})", any(self.rows("a", test)))).unwrap_or_default();
        format!("EXISTS (SELECT 1 FROM attributes AS a WHERE a.run = runs.no AND a.name = {name}{rows})")
    }

    /// Returns queries for the numbers of the runs that pass; each is answered from one index.
    fn lists(&mut self, condition: &Condition) -> Vec<String> {
        match condition {
            Condition::Any(parts) => parts.iter().flat_map(|part| self.lists(part)).collect(),
            Condition::Is(Field::Attribute(name), test) => {
                let name = self.bind(SqlValue::Text(name.to_string()));
                let rows = self.rows("a", test);
                let rows = if rows.is_empty() { vec!["1 = 0".to_owned()] } else { rows };
                rows.iter()
                    .map(|row| format!("SELECT a.run FROM attributes AS a WHERE a.name = {name} AND {row}"))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the conditions on a row of an attribute, of which one must hold. The test is not a negative one.
    fn rows(&mut self, table: &str, test: &Test) -> Vec<String> {
        let word = self.dialect.word;
        let name = |column: Column| match column {
            Column::Word => format!("{table}.{word}"),
            Column::Number(_) => format!("{table}.number"),
            Column::Real => format!("{table}.real"),
        };
        let kind = |column: Column| match column.kind() {
            Some(kind) => format!("{table}.kind = {kind} AND "),
            None => String::new(),
        };
        match test {
            Test::Compare(comparison, literal) => comparisons(*comparison, literal)
                .into_iter()
                .map(|(column, comparison, value)| {
                    format!("({}{} {} {})", kind(column), name(column), comparison.sign(), self.bind(value))
                })
                .collect(),
            Test::In(all) => {
                let all: Vec<_> = all.iter().flat_map(|one| comparisons(Comparison::Equal, one)).collect();
                let columns = [Column::Word, Column::Number(1), Column::Number(3), Column::Number(4), Column::Real];
                let of = |column| all.iter().filter(move |(other, ..)| *other == column);
                let columns = columns.into_iter().filter(|column| of(*column).next().is_some());
                columns
                    .map(|column| {
                        let values: Vec<String> = of(column).map(|(.., value)| self.bind(value.clone())).collect();
                        format!("({}{} IN ({}))", kind(column), name(column), values.join(", "))
                    })
                    .collect()
            }
            Test::Between(low, high) => {
                let highs = comparisons(Comparison::AtMost, high);
                let lows = comparisons(Comparison::AtLeast, low).into_iter();
                let both = lows.filter_map(|(column, _, low)| {
                    let (.., high) = highs.iter().find(|(other, ..)| *other == column)?;
                    Some((column, low, high.clone()))
                });
                both.map(|(column, low, high)| {
                    let (low, high) = (self.bind(low), self.bind(high));
                    format!("({}{} BETWEEN {low} AND {high})", kind(column), name(column))
                })
                .collect()
            }
            Test::StartsWith(start) => vec![format!("({})", self.starts_with(&name(Column::Word), start))],
            _ => Vec::new(),
        }
    }
}

/// Returns a condition that holds if one of these does.
fn any(rows: Vec<String>) -> String {
    if rows.is_empty() { "1 = 0".to_owned() } else { rows.join(" OR ") }
}

const fn column(field: &Field) -> &'static str {
    match field {
        Field::WorkflowId => "workflow_id",
        Field::WorkflowType => "workflow",
        Field::RunId => "run_id",
        Field::ExecutionStatus => "status",
        Field::TaskQueue => "queue",
        Field::StartTime => "started",
        Field::CloseTime => "closed",
        _ => "stuck_cause",
    }
}

/// Returns the first text, in the order of the bytes, that comes after all that start with this one.
fn after_all_that_start_with(start: &str) -> Option<String> {
    let mut chars: Vec<char> = start.chars().collect();
    while let Some(last) = chars.pop() {
        // The numbers of surrogates are left out.
        let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_comes_after_a_prefix_is_the_next_of_its_length_or_shorter() {
        let after = |start| after_all_that_start_with(start);
        assert_eq!(after("ab"), Some("ac".to_owned()));
        assert_eq!(after("a\u{10ffff}"), Some("b".to_owned()));
        assert_eq!(after("\u{d7ff}"), Some("\u{e000}".to_owned()));
        assert_eq!(after("\u{10ffff}"), None);
        assert_eq!(after(""), None);
    }
}
