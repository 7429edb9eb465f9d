//! Which workflows have come to their end: for systems that can only be asked, over and over, whether one has.
//!
//! A caller that waits for a workflow waits here, and asks the system only when its code has returned. That costs a system nothing and
//! spares it thousands of questions; it is the best a program could do.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::oneshot;

static WAITING: Mutex<Option<HashMap<String, oneshot::Sender<()>>>> = Mutex::new(None);

/// The code of this workflow is about to return. It may be said again when it is replayed.
pub fn tell(id: &str) {
    if let Some(waiting) = waiting().as_mut().and_then(|waiting| waiting.remove(id)) {
        // The caller that waited may have gone away.
        let _ = waiting.send(());
    }
}

/// Done when the code of this workflow has returned. To be called before it is started.
pub fn expect(id: &str) -> oneshot::Receiver<()> {
    let (tell, told) = oneshot::channel();
    waiting().get_or_insert_default().insert(id.to_owned(), tell);
    told
}

fn waiting() -> MutexGuard<'static, Option<HashMap<String, oneshot::Sender<()>>>> {
    WAITING.lock().expect("no code that can panic runs under this lock")
}
