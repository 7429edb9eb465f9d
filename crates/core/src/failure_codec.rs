//! The binary form of failures. A chain of causes is written as a flat list, so that no record, whatever it holds, can
//! make its reader run out of stack.

use minicbor::decode::Decoder;
use minicbor::encode::{Encoder, Write};
use minicbor::{Decode, Encode};

use crate::failure::{Failure, FailureKind, MAX_CAUSES, Origin};
use crate::{Name, Payload};

/// One failure of a chain, without its cause.
#[derive(Encode, Decode)]
struct Link {
    #[n(0)]
    kind: FailureKind,
    #[n(1)]
    message: String,
    #[n(2)]
    type_name: Option<Name>,
    #[n(3)]
    non_retryable: bool,
    #[n(4)]
    details: Vec<Payload>,
    #[n(5)]
    origin: Option<Box<Origin>>,
}

impl From<&Failure> for Link {
    fn from(failure: &Failure) -> Self {
        Self {
            kind: failure.kind.clone(),
            message: failure.message.clone(),
            type_name: failure.type_name.clone(),
            non_retryable: failure.non_retryable,
            details: failure.details.clone(),
            origin: failure.origin.clone(),
        }
    }
}

impl Link {
    fn caused_by(self, cause: Option<Failure>) -> Failure {
        let Self { kind, message, type_name, non_retryable, details, origin } = self;
        Failure { kind, message, type_name, non_retryable, details, cause: cause.map(Box::new), origin }
    }
}

impl<C> Encode<C> for Failure {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), minicbor::encode::Error<W::Error>> {
        let links: Vec<Link> = self.chain().take(MAX_CAUSES).map(Link::from).collect();
        links.encode(e, ctx)
    }
}

impl<'b, C> Decode<'b, C> for Failure {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Self, minicbor::decode::Error> {
        let links: Vec<Link> = Vec::decode(d, ctx)?;
        if links.len() > MAX_CAUSES {
            return Err(minicbor::decode::Error::message("a failure has too many causes"));
        }
        let chain = links.into_iter().rev().fold(None, |cause, link| Some(link.caused_by(cause)));
        chain.ok_or_else(|| minicbor::decode::Error::message("a failure is at least one"))
    }
}
