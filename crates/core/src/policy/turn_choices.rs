//! The choices of one turn, as they are recorded with it.

use minicbor::decode::{Decode, Decoder};
use minicbor::encode::{Encode, Encoder, Write};
use serde::{Deserialize, Serialize};

use super::choice_log::{ChoiceLog, LogHeader};
use crate::Name;

/// The choice log of one turn. It is part of the turn's record and complete in itself: playing the turn again needs
/// nothing of the turns before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnChoices(ChoiceLog);

impl TurnChoices {
    /// Returns the log.
    pub fn log(&self) -> &ChoiceLog {
        &self.0
    }
}

/// A turn in which nothing was picked.
impl Default for TurnChoices {
    fn default() -> Self {
        Self(ChoiceLog::empty(LogHeader::named(Name::from_static("none")), 0))
    }
}

impl From<ChoiceLog> for TurnChoices {
    fn from(log: ChoiceLog) -> Self {
        Self(log)
    }
}

impl From<TurnChoices> for ChoiceLog {
    fn from(choices: TurnChoices) -> Self {
        choices.0
    }
}

impl<C> Encode<C> for TurnChoices {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), minicbor::encode::Error<W::Error>> {
        self.0.encode(e, ctx)
    }
}

impl<'b, C> Decode<'b, C> for TurnChoices {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Self, minicbor::decode::Error> {
        ChoiceLog::decode(d, ctx).map(Self)
    }
}
