//! The seals of records and of files of histories, implemented a second time so that tests can forge what passes the
//! checksums.

/// Returns the record with its checksum.
pub fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = crc32fast::hash(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// Returns these lines of JSON as a file of histories has them: each with a checksum over itself and the checksum before it.
pub fn sealed_lines(lines: impl IntoIterator<Item = String>) -> String {
    let mut sum = 0_u32;
    let seal = |line: String| {
        let rest = &line[1..];
        sum = crc32fast::hash(&[&sum.to_le_bytes(), rest.as_bytes()].concat());
        format!("{{\"sum\":\"{sum:08x}\",{rest}\n")
    };
    lines.into_iter().map(seal).collect()
}

#[test]
fn forged_checksum_equals_the_real_one() {
    let transcript = dacapo_core::Transcript::new("forged", dacapo_core::Pins::default());
    let bytes = transcript.to_bytes();
    assert_eq!(sealed(bytes[..bytes.len() - 4].to_vec()), bytes);
}
