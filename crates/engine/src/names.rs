//! Names that callers and workflow code give: workflow ids, types, queues, keys.

use dacapo_client::{Error, grouped};

/// The maximum number of bytes of a name: names are keys of indexes, and people read them.
const LONGEST: usize = 1_000;

/// Checks a name: not empty, at most 1,000 bytes, no control characters. `what` says in the error what is named.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), Error> {
    let problem = match name {
        "" => format!("{what} is empty: give it 1 to {} bytes", grouped(LONGEST)),
        name if name.len() > LONGEST => {
            let (long, longest) = (grouped(name.len()), grouped(LONGEST));
            format!("{what} is {long} bytes long, at most {longest} are allowed: shorten it")
        }
        name if name.chars().any(char::is_control) => {
            format!("{what} {name:?} contains control characters: remove them")
        }
        _ => return Ok(()),
    };
    Err(Error::InvalidArgument(problem))
}
