//! Parses a search: `condition ORDER BY time`, by recursive descent over its tokens.

use dacapo_core::parse_timestamp;

use super::field::Kind;
use super::token::{Placed, Token, tokens};
use super::{Comparison, Condition, Field, Literal, Order, SearchError, Test};
use crate::{Status, StuckCause};

type Result<T> = std::result::Result<T, SearchError>;

/// The most bytes of a search.
const MAX_TEXT: usize = 16 * 1024;
/// The most brackets and negations within each other.
const MAX_DEPTH: usize = 32;
/// The most values that are compared: a database limits them too.
const MAX_VALUES: usize = 500;

pub(super) fn parse(text: &str) -> Result<(Option<Condition>, Order)> {
    if text.len() > MAX_TEXT {
        let problem = format!("the search is {} bytes long, at most {MAX_TEXT} are allowed: ask for less", text.len());
        return Err(SearchError { text: String::new(), column: 1, problem });
    }
    let mut parser = Parser { text, tokens: tokens(text)?, next: 0, depth: 0, values: 0 };
    let is_empty = matches!(parser.peek(), Token::End) || parser.at_word("ORDER");
    let condition = if is_empty { None } else { Some(parser.any()?) };
    let order = parser.order()?;
    match parser.peek() {
        Token::End => Ok((condition, order)),
        other => Err(parser.wrong(format!("{other} cannot follow here: expected AND, OR, ORDER BY or the end"))),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Placed>,
    next: usize,
    depth: usize,
    values: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].token
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        // The last token stays.
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    /// The error at the next token.
    fn wrong(&self, problem: impl Into<String>) -> SearchError {
        self.wrong_at(self.next, problem)
    }

    fn wrong_at(&self, token: usize, problem: impl Into<String>) -> SearchError {
        SearchError::at(self.text, self.tokens[token].start, problem)
    }

    fn at_word(&self, expected: &str) -> bool {
        matches!(self.peek(), Token::Word(word) if word.eq_ignore_ascii_case(expected))
    }

    fn take_word(&mut self, expected: &str) -> bool {
        let found = self.at_word(expected);
        if found {
            self.take();
        }
        found
    }

    fn take_sign(&mut self, expected: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(sign) if *sign == expected);
        if found {
            self.take();
        }
        found
    }

    fn expect_word(&mut self, expected: &str) -> Result<()> {
        match self.take_word(expected) {
            true => Ok(()),
            false => Err(self.wrong(format!("expected {expected}, found {}", self.peek()))),
        }
    }

    fn expect_sign(&mut self, expected: &str) -> Result<()> {
        match self.take_sign(expected) {
            true => Ok(()),
            false => Err(self.wrong(format!("expected `{expected}`, found {}", self.peek()))),
        }
    }

    fn any(&mut self) -> Result<Condition> {
        let mut parts = vec![self.all()?];
        while self.take_word("OR") {
            parts.push(self.all()?);
        }
        Ok(one_or(parts, Condition::Any))
    }

    fn all(&mut self) -> Result<Condition> {
        let mut parts = vec![self.part()?];
        while self.take_word("AND") {
            parts.push(self.part()?);
        }
        Ok(one_or(parts, Condition::All))
    }

    fn part(&mut self) -> Result<Condition> {
        if self.depth == MAX_DEPTH {
            return Err(self.wrong(format!("more than {MAX_DEPTH} brackets within each other: write less of them")));
        }
        self.depth += 1;
        let part = if self.take_word("NOT") {
            self.part()?.negated()
        } else if self.take_sign("(") {
            let inner = self.any()?;
            self.expect_sign(")")?;
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(part)
    }

    fn test(&mut self) -> Result<Condition> {
        let place = self.next;
        let field = self.field()?;
        let test = self.test_of(&field)?;
        if matches!(test, Test::IsNull | Test::IsNotNull) && field.kind() == Kind::Text {
            return Err(self.wrong_at(place, format!("{field} is never null: every run has one")));
        }
        Ok(Condition::Is(field, test))
    }

    fn field(&mut self) -> Result<Field> {
        let place = self.next;
        let name = match self.take() {
            Token::Name(name) if name.is_empty() => return Err(self.wrong_at(place, "no attribute has an empty name")),
            Token::Name(name) => return Ok(Field::of(&name)),
            Token::Word(name) => name,
            other => {
                let known = Field::known();
                let problem = format!("expected a field, found {other}: {known}, or the name of a search attribute");
                return Err(self.wrong_at(place, problem));
            }
        };
        let field = Field::of(&name);
        if let (Field::Attribute(_), Some(meant)) = (&field, Field::meant_by(&name)) {
            let problem =
                format!("`{name}` is not known: write {meant}; or `{name}` in backticks if it is a search attribute");
            return Err(self.wrong_at(place, problem));
        }
        Ok(field)
    }

    fn test_of(&mut self, field: &Field) -> Result<Test> {
        if let Token::Sign(sign) = *self.peek()
            && let Some(comparison) = Comparison::of(sign)
        {
            let place = self.next;
            self.take();
            let is_order = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
            if is_order && matches!(field.kind(), Kind::Status | Kind::Cause) {
                return Err(self.wrong_at(place, format!("{field} has no order: compare by =, != or IN")));
            }
            return Ok(Test::Compare(comparison, self.value(field)?));
        }
        if self.take_word("IS") {
            let is_not = self.take_word("NOT");
            self.expect_word("NULL")?;
            return Ok(if is_not { Test::IsNotNull } else { Test::IsNull });
        }
        let is_not = self.take_word("NOT");
        let test = self.word_test(field)?;
        Ok(if is_not { test.negated() } else { test })
    }

    /// Parses a test that begins with a word and that NOT may stand before.
    fn word_test(&mut self, field: &Field) -> Result<Test> {
        let place = self.next;
        if self.take_word("IN") {
            self.expect_sign("(")?;
            let mut values = vec![self.value(field)?];
            while self.take_sign(",") {
                values.push(self.value(field)?);
            }
            self.expect_sign(")")?;
            return Ok(Test::In(values));
        }
        if self.take_word("BETWEEN") {
            if matches!(field.kind(), Kind::Status | Kind::Cause) {
                return Err(self.wrong_at(place, format!("{field} has no order: compare by =, != or IN")));
            }
            let low = self.value(field)?;
            self.expect_word("AND")?;
            return Ok(Test::Between(low, self.value(field)?));
        }
        if self.take_word("STARTS_WITH") {
            if !matches!(field.kind(), Kind::Text | Kind::Any) {
                return Err(self.wrong_at(place, format!("{field} is no text: STARTS_WITH compares texts")));
            }
            let place = self.next;
            return match self.take() {
                Token::Text(start) => Ok(Test::StartsWith(start)),
                other => Err(self.wrong_at(place, format!("STARTS_WITH needs a text in single quotes, found {other}"))),
            };
        }
        if self.at_word("LIKE") {
            return Err(self.wrong("`LIKE` is not known: STARTS_WITH 'eu-' finds texts that begin so"));
        }
        let found = self.peek();
        Err(self.wrong(format!(
            "expected a comparison of {field}, found {found}: =, !=, <, <=, >, >=, IN (…), BETWEEN … AND …, STARTS_WITH, IS NULL; the last four \
             also with NOT"
        )))
    }

    fn value(&mut self, field: &Field) -> Result<Literal> {
        let place = self.next;
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.wrong(format!("more than {MAX_VALUES} values in one search: ask for fewer at a time")));
        }
        let token = self.take();
        let value = match (&token, field.kind()) {
            (Token::Text(text), kind) => text_as(text, kind),
            (Token::Int(number), Kind::Any) => Ok(Literal::Int(*number)),
            (Token::Float(number), Kind::Any) => Ok(Literal::Float(*number)),
            (Token::Word(word), Kind::Any) if word.eq_ignore_ascii_case("true") => Ok(Literal::Bool(true)),
            (Token::Word(word), Kind::Any) if word.eq_ignore_ascii_case("false") => Ok(Literal::Bool(false)),
            (Token::Word(word), _) if word.eq_ignore_ascii_case("null") => {
                Err("nothing equals NULL: write IS NULL".to_owned())
            }
            (Token::Word(word), _) => Err(format!("`{word}` is no value: put text in single quotes, '{word}'")),
            (Token::Int(_) | Token::Float(_), _) => {
                Err(format!("{field} is no number: put its value in single quotes"))
            }
            (other, _) => Err(format!("expected a value of {field}, found {other}")),
        };
        value.map_err(|problem| self.wrong_at(place, problem))
    }

    fn order(&mut self) -> Result<Order> {
        if !self.take_word("ORDER") {
            return Ok(Order::Newest);
        }
        self.expect_word("BY")?;
        let place = self.next;
        let field = match self.take() {
            Token::Word(name) | Token::Name(name) => Field::of(&name),
            other => return Err(self.wrong_at(place, format!("expected StartTime or CloseTime, found {other}"))),
        };
        let descending = self.take_word("DESC");
        if !descending {
            self.take_word("ASC");
        }
        match field {
            Field::StartTime => Ok(Order::StartTime { descending }),
            Field::CloseTime => Ok(Order::CloseTime { descending }),
            other => Err(self
                .wrong_at(place, format!("runs cannot be ordered by {other}: order them by StartTime or CloseTime"))),
        }
    }
}

fn one_or(mut parts: Vec<Condition>, all: impl Fn(Vec<Condition>) -> Condition) -> Condition {
    match parts.len() {
        1 => parts.remove(0),
        _ => all(parts),
    }
}

/// Returns the value that a text is for a field of this kind.
fn text_as(text: &str, kind: Kind) -> std::result::Result<Literal, String> {
    match kind {
        Kind::Text | Kind::Any => Ok(Literal::Text(text.to_owned())),
        Kind::Time => parse_timestamp(text)
            .map(Literal::Time)
            .ok_or_else(|| format!("'{text}' is no moment: write it as '2026-02-28T09:30:00Z' or '2026-02-28'")),
        Kind::Status => status(text).map(Literal::Status).ok_or_else(|| {
            let known = STATUSES.map(|(word, _)| word).join(", ");
            let is_stuck = text.eq_ignore_ascii_case("stuck");
            let stuck = if is_stuck { ". A run that is stuck is open: write StuckCause IS NOT NULL" } else { "" };
            format!("'{text}' is no status: {known}{stuck}")
        }),
        Kind::Cause => cause(text).map(Literal::Cause).ok_or_else(|| {
            let known: Vec<String> = StuckCause::ALL.iter().map(word).collect();
            format!("'{text}' is no cause: {}", known.join(", "))
        }),
    }
}

const STATUSES: [(&str, Status); 7] = [
    ("Running", Status::Open),
    ("Completed", Status::Completed),
    ("Failed", Status::Failed),
    ("Canceled", Status::Cancelled),
    ("Terminated", Status::Terminated),
    ("ContinuedAsNew", Status::ContinuedAsNew),
    ("TimedOut", Status::TimedOut),
];

/// Statuses have Temporal's words, and the words that Dacapo shows: `open`, `cancelled`, `timed out`.
fn status(text: &str) -> Option<Status> {
    let plain = |text: &str| text.replace([' ', '_'], "").to_lowercase();
    let of_table = STATUSES.iter().find(|(word, _)| plain(word) == plain(text)).map(|(_, status)| *status);
    of_table.or_else(|| Status::ALL.into_iter().find(|status| plain(&status.to_string()) == plain(text)))
}

/// Causes have the words that they have on the wire.
fn cause(text: &str) -> Option<StuckCause> {
    StuckCause::ALL.into_iter().find(|cause| word(cause).eq_ignore_ascii_case(text))
}

fn word(cause: &StuckCause) -> String {
    let value = serde_json::to_value(cause).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
