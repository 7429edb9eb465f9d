//! Names that callers and workflow code give: workflow ids, types, queues, keys.

use crate::EngineError;

/// The maximum number of bytes of a name: names are keys of indexes, and people read them.
const LONGEST: usize = 1_000;

/// Checks a name: not empty, at most 1,000 bytes, no control characters. `what` says in the error what is named.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), EngineError> {
    let problem = match name {
        "" => Some("is empty".to_owned()),
        name if name.len() > LONGEST => Some(format!("has {} bytes; {LONGEST} are allowed", name.len())),
        name if name.chars().any(char::is_control) => Some(format!("holds control characters: {name:?}")),
        _ => None,
    };
    problem.map_or(Ok(()), |problem| Err(EngineError::BadInput(format!("{what} {problem}"))))
}
