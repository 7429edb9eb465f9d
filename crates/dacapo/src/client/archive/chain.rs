//! The checksums of a file of histories. Each line has one over itself and the checksum of the line before, so that a line that was
//! changed, moved, doubled or left out is noticed.

/// How a line with a checksum begins. The checksum, in eight hexadecimal digits, and the end of the field follow.
const BEGIN: &[u8] = b"{\"sum\":\"";
const END: &[u8] = b"\",";
const DIGITS: usize = 8;

/// The checksum of the last line.
#[derive(Debug, Default)]
pub(super) struct Chain(u32);

impl Chain {
    /// A line of JSON, which is an object that is not empty, with its checksum as the first field.
    pub(super) fn seal(&mut self, json: &[u8]) -> Vec<u8> {
        // The brace at its beginning is that of the whole line.
        let rest = &json[1..];
        [BEGIN, self.next(rest).as_bytes(), END, rest].concat()
    }

    /// Whether a line has a checksum.
    pub(super) fn is_sealed(line: &[u8]) -> bool {
        line.starts_with(BEGIN)
    }

    /// The line without its checksum. None if it has none, or another.
    pub(super) fn open<'l>(&mut self, line: &'l mut [u8]) -> Option<&'l [u8]> {
        let head = BEGIN.len() + DIGITS + END.len();
        let (start, rest) = line.split_at_checked(head)?;
        let expected = [BEGIN, self.next(rest).as_bytes(), END].concat();
        if start != expected {
            return None;
        }
        line[head - 1] = b'{';
        Some(&line[head - 1..])
    }

    fn next(&mut self, content: &[u8]) -> String {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.0.to_le_bytes());
        hasher.update(content);
        self.0 = hasher.finalize();
        format!("{:08x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_opened_as_it_was_sealed_and_only_after_the_one_before() {
        let mut chain = Chain::default();
        let lines = [b"{\"a\":1}", b"{\"b\":2}"].map(|json| chain.seal(json));
        assert!(lines.iter().all(|line| Chain::is_sealed(line)));
        let mut chain = Chain::default();
        let opened = lines.clone().map(|mut line| chain.open(&mut line).map(<[u8]>::to_vec));
        assert_eq!(opened, [Some(b"{\"a\":1}".to_vec()), Some(b"{\"b\":2}".to_vec())]);
        assert_eq!(Chain::default().open(&mut lines[1].clone()), None);
        assert_eq!(Chain::default().open(&mut b"{\"sum\":\"".to_vec()), None);
    }
}
