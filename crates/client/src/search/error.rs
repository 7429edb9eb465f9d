//! Texts that are no search.

use std::fmt;

/// A text that is no search: what is wrong, and at which column.
///
/// It is shown with the text and a mark below the column:
/// ```text
/// cannot read the search at column 16: `checkout` is no value: put text in single quotes, 'checkout'
///   WorkflowType = checkout
///                  ^
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchError {
    /// The whole text.
    pub text: String,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The problem there, and the text to write instead.
    pub problem: String,
}

impl SearchError {
    /// The error at this byte of the text.
    pub(super) fn at(text: &str, byte: usize, problem: impl Into<String>) -> Self {
        let column = text.char_indices().take_while(|(start, _)| *start < byte).count() + 1;
        Self { text: text.to_owned(), column, problem: problem.into() }
    }
}

impl fmt::Display for SearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, column, problem } = self;
        // A line break or a tab would move the mark.
        let line: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
        write!(f, "cannot read the search at column {column}: {problem}\n  {line}\n  {:>column$}", '^')
    }
}

impl std::error::Error for SearchError {}
