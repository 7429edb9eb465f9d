//! Where code panicked. What a panic says travels with it; where it happened is told to the panic hook alone.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// What the last panic of this thread said, if it said it in words, and where it was.
    static LAST: RefCell<Option<(Option<String>, String)>> = const { RefCell::new(None) };
}

/// From here on it is known where code panics, in the whole process. Whatever hook there was is called as before. Whoever
/// sets another one later and does not call this one gets reports without places.
pub fn keep_panic_places() {
    static ONCE: Once = Once::new();
    // Hooks cannot be changed by a thread that unwinds.
    if std::thread::panicking() {
        return;
    }
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            keep(info);
            before(info);
        }));
    });
}

/// Must not panic, and may be called while the thread ends.
fn keep(info: &PanicHookInfo<'_>) {
    let Some(place) = info.location() else { return };
    let place = format!("{}:{}", place.file(), place.line());
    let said = words(info.payload());
    let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = Some((said, place))));
}

/// Where this panic happened, which this thread has just caught. None if it is not the last one that the hook was told of:
/// one that was caught and raised again, or that came from another thread.
pub fn panic_place(payload: &(dyn Any + Send)) -> Option<String> {
    let last = LAST.try_with(RefCell::take).ok().flatten();
    last.filter(|(said, _)| *said == words(payload)).map(|(_, place)| place)
}

/// What a panic said, if it said it in words.
pub(crate) fn words(payload: &(dyn Any + Send)) -> Option<String> {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
}
