//! Values as stores keep them.

use dacapo_core::to_stored;

/// Encodes a value.
pub(crate) fn encode<T: minicbor::Encode<()>>(value: T) -> Vec<u8> {
    to_stored(&value)
}
