//! The content of a file in view of a power loss: what was flushed, and what was only written.

/// The least number of bytes that a disk writes at once.
const SECTOR: usize = 512;

/// One name in a folder, and the file behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    /// The content behind the name now; none if there is no such file.
    now: Option<Content>,
    /// The content behind the name after a power loss, as long as the folder was not flushed since the name changed.
    before: Option<Option<Vec<u8>>>,
}

/// The content of a file.
#[derive(Clone, Debug, Default)]
struct Content {
    /// The bytes that a flush has made durable.
    flushed: Vec<u8>,
    /// The changes since the last flush, in order.
    pending: Vec<Change>,
}

/// A change that no flush has made durable.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Truncate(usize),
}

/// Pseudorandom numbers from a seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        // The step of splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }
}

impl Change {
    /// Applies the change: whole or, if a number of sectors is given, only the first of them.
    fn apply(&self, content: &mut Vec<u8>, sectors: Option<usize>) {
        match self {
            Self::Truncate(size) => content.resize(*size, 0),
            Self::Write { at, bytes } => {
                let whole = bytes.len();
                // Sectors are counted from the beginning of the file, not of the write.
                let end =
                    sectors.map_or(whole, |count| ((at / SECTOR + count) * SECTOR).saturating_sub(*at).min(whole));
                if end > 0 {
                    content.resize(content.len().max(at + end), 0);
                    content[*at..at + end].copy_from_slice(&bytes[..end]);
                }
            }
        }
    }
}

impl Content {
    fn after_power_loss(&self, dice: Option<&mut Dice>) -> Vec<u8> {
        let mut content = self.flushed.clone();
        let Some(dice) = dice else { return content };
        for change in &self.pending {
            match dice.below(4) {
                0 => {}
                1 => change.apply(&mut content, Some(dice.below(9))),
                _ => change.apply(&mut content, None),
            }
        }
        content
    }
}

impl File {
    /// Creates a file whose content is durable; none for a file that does not exist.
    pub(crate) fn durable(content: Option<Vec<u8>>) -> Self {
        Self { now: content.map(|flushed| Content { flushed, pending: Vec::new() }), before: None }
    }

    /// Creates the file, unless it exists.
    pub(crate) fn create(&mut self) {
        if self.now.is_none() {
            self.before.get_or_insert(None);
            self.now = Some(Content::default());
        }
    }

    pub(crate) fn delete(&mut self) {
        if let Some(content) = self.now.take() {
            self.before.get_or_insert(Some(content.flushed));
        }
    }

    /// Moves the content to another name.
    pub(crate) fn rename(&mut self, to: &mut Self) {
        let content = self.now.clone();
        self.delete();
        to.delete();
        to.before.get_or_insert(None);
        to.now = content;
    }

    pub(crate) fn change(&mut self, change: Change) {
        self.now.get_or_insert_default().pending.push(change);
    }

    /// Flushes the file.
    pub(crate) fn flush(&mut self) {
        if let Some(Content { flushed, pending }) = &mut self.now {
            std::mem::take(pending).iter().for_each(|change| change.apply(flushed, None));
        }
    }

    /// Returns whether the file's name is not durable yet.
    pub(crate) fn is_new(&self) -> bool {
        self.before.is_some()
    }

    /// Flushes the folder.
    pub(crate) fn flush_name(&mut self) {
        self.before = None;
    }

    /// Returns the content after a power loss: of bytes that were not flushed some are there, some are not, and some in
    /// part.
    pub(crate) fn after_power_loss(&self, mut dice: Option<&mut Dice>) -> Option<Vec<u8>> {
        let keeps_name = dice.as_mut().is_some_and(|dice| dice.below(2) == 0);
        match &self.before {
            Some(before) if !keeps_name => before.clone(),
            _ => self.now.as_ref().map(|content| content.after_power_loss(dice)),
        }
    }
}
