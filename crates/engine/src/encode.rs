//! Values as stores keep them.

/// Encodes a value.
pub(crate) fn encode<T: minicbor::Encode<()>>(value: T) -> Vec<u8> {
    minicbor::to_vec(value).expect("writing to memory cannot fail")
}
