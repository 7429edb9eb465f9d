//! Commands that a record and the list of open operations share, for minicbor's `with`: in the form of the command alone.

use std::sync::Arc;

use minicbor::decode::{self, Decode, Decoder};
use minicbor::encode::{self, Encode, Encoder, Write};

pub(super) fn encode<T: Encode<C>, C, W: Write>(
    command: &Arc<T>,
    e: &mut Encoder<W>,
    ctx: &mut C,
) -> Result<(), encode::Error<W::Error>> {
    (**command).encode(e, ctx)
}

pub(super) fn decode<'b, T: Decode<'b, C>, C>(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Arc<T>, decode::Error> {
    T::decode(d, ctx).map(Arc::new)
}
