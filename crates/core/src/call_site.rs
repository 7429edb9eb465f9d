//! Call sites: where in the user's source a command was decided.

use std::fmt;
use std::panic::Location;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Name;

/// A place in the user's source. It is recorded with each command but is not part of its identity: moving code breaks
/// no replay.
#[derive(Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct CallSite {
    /// The file, as the compiler was given it.
    #[n(0)]
    pub file: Name,
    /// The line, from 1.
    #[n(1)]
    pub line: u32,
    /// The column, from 1.
    #[n(2)]
    pub column: u32,
}

impl From<&'static Location<'static>> for CallSite {
    fn from(location: &'static Location<'static>) -> Self {
        Self { file: Name::from_static(location.file()), line: location.line(), column: location.column() }
    }
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl fmt::Debug for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for CallSite {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallSite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parse = || {
            let mut parts = text.rsplitn(3, ':');
            let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            Some(Self { file: Name::from(parts.next()?.to_owned()), line, column })
        };
        parse().ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no call site: write file:line:column")))
    }
}
