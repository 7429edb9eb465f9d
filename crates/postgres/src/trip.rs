//! Statements that go to the server together, in one round trip.

use std::borrow::Cow;

use tokio_postgres::types::ToSql;

/// A value of a statement.
pub(crate) type Value<'v> = Box<dyn ToSql + Sync + Send + 'v>;

/// Statements in the order in which the server runs them. Each sees what was committed when it begins.
#[derive(Default)]
pub(crate) struct Trip<'v> {
    pub(crate) steps: Vec<Step<'v>>,
}

/// One statement and its values.
pub(crate) struct Step<'v> {
    pub(crate) sql: Cow<'static, str>,
    pub(crate) values: Vec<Value<'v>>,
}

impl<'v> Trip<'v> {
    /// Adds a statement, and returns the place of its rows among the answers.
    pub(crate) fn step(&mut self, sql: impl Into<Cow<'static, str>>, values: Vec<Value<'v>>) -> usize {
        self.steps.push(Step { sql: sql.into(), values });
        self.steps.len() - 1
    }
}

/// Makes the list of a statement's values.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as $crate::trip::Value<'_>),*]
    };
}
pub(crate) use values;
