//! Notes in a file that is mapped into memory: writing one needs no system call, and the system keeps what was written
//! when the process dies.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

/// The size of a slot: a word and a number.
const SIZE: usize = 16;

/// Slots of sixteen bytes in a file that is mapped into memory.
#[derive(Debug)]
pub struct Slots {
    map: MmapRaw,
    count: usize,
}

impl Slots {
    /// Maps a file, and makes it long enough for `count` slots. The file must not be cut while it is mapped.
    pub fn map(file: &mut File, count: usize) -> io::Result<Self> {
        let length = (count * SIZE) as u64;
        let missing = length.saturating_sub(file.metadata()?.len());
        // Writes zeros and does not only extend the file: a page for which the disk has no room would end the process
        // when it is accessed.
        file.seek(SeekFrom::End(0))?;
        file.write_all(&vec![0; missing as usize])?;
        Ok(Self { map: MmapOptions::new().len(count * SIZE).map_raw(&*file)?, count })
    }

    /// Writes a slot: the second half first, so that a reader that finds a first half finds what belongs to it.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn set(&self, slot: usize, bytes: [u8; SIZE]) {
        let [head, number] = self.words(slot);
        let (first, second) = bytes.split_at(8);
        let word = |half: &[u8]| u64::from_ne_bytes(half.try_into().expect("half of sixteen"));
        number.store(word(second), Ordering::Release);
        head.store(word(first), Ordering::Release);
    }

    /// Empties a slot.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn clear(&self, slot: usize) {
        let [head, number] = self.words(slot);
        head.store(0, Ordering::Release);
        number.store(0, Ordering::Release);
    }

    fn words(&self, slot: usize) -> [&AtomicU64; 2] {
        assert!(slot < self.count, "there are {} slots", self.count);
        let words = self.map.as_mut_ptr().cast::<AtomicU64>();
        // SAFETY: the map is as long as all slots, begins at a page and lives as long as `self`, and it is only ever
        // accessed through atomics.
        [2 * slot, 2 * slot + 1].map(|word| unsafe { &*words.add(word) })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn content(file: &mut File) -> Vec<u8> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn slot_that_is_set_is_written_to_the_file_and_the_others_stay() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 20]).unwrap();
        let slots = Slots::map(&mut file, 4).unwrap();
        assert_eq!(content(&mut file)[..21], [[7; 20].as_slice(), &[0]].concat());
        slots.set(3, *b"sixteen  letters");
        slots.clear(0);
        let expected = [[0; 16], [7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0; 16], *b"sixteen  letters"];
        assert_eq!(content(&mut file), expected.concat());
        drop(slots);
        assert_eq!(content(&mut file), expected.concat());
    }

    #[test]
    #[should_panic = "there are 4 slots"]
    fn slot_beyond_the_last_is_refused() {
        let mut file = tempfile::tempfile().unwrap();
        Slots::map(&mut file, 4).unwrap().clear(4);
    }
}
