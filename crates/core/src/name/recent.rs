//! Names that this thread has read lately. The turns of a run name the same activities, queues, builds and source files over and
//! over: a replay that shares them allocates less, and takes less memory.

use std::cell::RefCell;
use std::sync::Arc;

/// The number of places. A name has one, which the names of operations, each of which is read once, take from it now and then.
const PLACES: usize = 64;
/// The most bytes of a name that is kept.
const LONGEST: usize = 128;

thread_local! {
    static RECENT: RefCell<[Option<Arc<str>>; PLACES]> = const { RefCell::new([const { None }; PLACES]) };
}

/// Returns the text as a shared string: that of an equal name which was read lately, if there is one.
pub(super) fn shared(text: &str) -> Arc<str> {
    if text.len() > LONGEST {
        return text.into();
    }
    // While the thread ends, there are no names to be shared with.
    RECENT.try_with(|recent| look_up(&mut recent.borrow_mut(), text)).unwrap_or_else(|_| text.into())
}

fn look_up(recent: &mut [Option<Arc<str>>; PLACES], text: &str) -> Arc<str> {
    let place = &mut recent[place(text.as_bytes())];
    match place {
        Some(name) if **name == *text => name.clone(),
        _ => place.insert(text.into()).clone(),
    }
}

/// A place that most names of one program do not share: by the length and three bytes.
fn place(text: &[u8]) -> usize {
    let byte = |at: usize| usize::from(text.get(at).copied().unwrap_or_default());
    let (middle, last) = (byte(text.len() / 2), byte(text.len().saturating_sub(1)));
    (text.len() + 3 * byte(0) + 5 * middle + 7 * last) % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_was_read_lately_is_shared_and_others_never_take_its_text() {
        let first = shared("charge");
        assert!(Arc::ptr_eq(&first, &shared("charge")));
        for number in 0..10_000 {
            let text = format!("order-{number}");
            assert_eq!(*shared(&text), *text);
        }
        assert_eq!(*shared("charge"), *"charge");
        assert_eq!(*shared(""), *"");
    }

    #[test]
    fn long_name_is_not_kept() {
        let long = "x".repeat(LONGEST + 1);
        assert!(!Arc::ptr_eq(&shared(&long), &shared(&long)));
    }
}
