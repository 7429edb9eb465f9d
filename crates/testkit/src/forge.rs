//! The seal of a record, written a second time so that tests can forge records which pass the checksum.

/// The record with the checksum that belongs to it.
pub fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut sum = bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    for word in words.iter().chain([&last]) {
        sum = mix(sum ^ u64::from_le_bytes(*word)).wrapping_add(1);
    }
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// SplitMix64's output function.
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[test]
fn a_forged_seal_is_the_real_one() {
    let transcript = dacapo_core::Transcript::new("forged", dacapo_core::Pins::default());
    let bytes = transcript.to_bytes();
    assert_eq!(sealed(bytes[..bytes.len() - 8].to_vec()), bytes);
}
