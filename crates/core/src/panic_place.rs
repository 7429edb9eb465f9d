//! The places of panics. A panic's payload carries its message; only the panic hook is given its place.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// The message of the last panic of this thread, if it is text, and its place.
    static LAST: RefCell<Option<(Option<String>, String)>> = const { RefCell::new(None) };
}

/// Keeps the place of every later panic of the process for [`panic_place`]. The hook that was set before is still
/// called. If a hook that is set later does not call this one, reports have no places.
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

/// Keeps the message and place of a panic. It must not panic, and may be called while the thread ends.
fn keep(info: &PanicHookInfo<'_>) {
    let Some(place) = info.location() else { return };
    let place = format!("{}:{}", place.file(), place.line());
    let said = words(info.payload());
    let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = Some((said, place))));
}

/// Returns the place of a panic that this thread has caught. `None` if it is not the last one that the hook saw: if it
/// was caught and raised again, or came from another thread.
pub fn panic_place(payload: &(dyn Any + Send)) -> Option<String> {
    let last = LAST.try_with(RefCell::take).ok().flatten();
    last.filter(|(said, _)| *said == words(payload)).map(|(_, place)| place)
}

/// Returns the message of a panic, if it is text.
pub(crate) fn words(payload: &(dyn Any + Send)) -> Option<String> {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
}
