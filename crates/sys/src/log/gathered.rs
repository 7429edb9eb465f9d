//! Consecutive bytes that are yet to be written to a file.

/// The most bytes that are gathered: SQLite's own layer takes a little less than 128 KiB in one call.
const MOST: usize = 120 << 10;

#[derive(Default)]
pub(crate) struct Gathered {
    at: i64,
    bytes: Vec<u8>,
}

impl Gathered {
    /// Adds bytes that follow the gathered ones. Returns whether they did, and there was room.
    pub(crate) fn add(&mut self, at: i64, bytes: &[u8]) -> bool {
        if self.bytes.is_empty() {
            self.at = at;
        }
        let follows = at == self.at + self.bytes.len() as i64;
        let fits = follows && self.bytes.len() + bytes.len() <= MOST;
        if fits {
            self.bytes.extend_from_slice(bytes);
        }
        fits
    }

    /// Takes the gathered bytes, and the position at which they belong.
    pub(crate) fn take(&mut self) -> Option<(i64, Vec<u8>)> {
        (!self.bytes.is_empty()).then(|| (self.at, std::mem::take(&mut self.bytes)))
    }

    /// Returns the memory of taken bytes, to be used again.
    pub(crate) fn give_back(&mut self, mut bytes: Vec<u8>) {
        bytes.clear();
        self.bytes = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_that_continues_the_last_one_is_gathered_and_any_other_is_refused() {
        let mut gathered = Gathered::default();
        assert_eq!(gathered.take(), None);
        assert!(gathered.add(32, b"abc") && gathered.add(35, b"de"));
        assert!(
            !gathered.add(36, b"overlaps") && !gathered.add(38, b"a hole before it") && !gathered.add(0, b"before")
        );
        let (at, bytes) = gathered.take().unwrap();
        assert_eq!((at, bytes.as_slice()), (32, b"abcde".as_slice()));
        gathered.give_back(bytes);
        assert!(gathered.add(7, b"elsewhere"));
        assert_eq!(gathered.take(), Some((7, b"elsewhere".to_vec())));
    }

    #[test]
    fn writes_beyond_the_room_of_the_buffer_are_refused() {
        let mut gathered = Gathered::default();
        assert!(!gathered.add(0, &vec![0; MOST + 1]));
        assert_eq!(gathered.take(), None);
        assert!(gathered.add(0, &vec![0; MOST]) && !gathered.add(MOST as i64, &[0]));
    }
}
