//! Programs that show Dacapo at work. Each module holds the workflows, activities and names of one; the binary of the same
//! name, where there is one, serves and drives them.
//!
//! | program | shows |
//! |---|---|
//! | [`journey`] | kill it at any moment, run it again: it goes on where it stopped |
//! | [`saga`] | undoing what was done, in reverse order, also when the run is cancelled |
//! | [`approval`] | waiting for people: updates, reminders, escalation |
//! | [`fan_out`] | hundreds of activities, a few at a time |
//! | [`entity`] | an object that lives for years: signals, queries, updates, continue-as-new |
//! | [`polling`] | waiting for a service that has no callbacks |
//! | [`counter`] | continue-as-new: counting for ever with a short history |
//! | [`versions`] | changing code while runs are open: patches |
//! | [`errand`] | not to learn from: work of many nodes, for the soak that kills them |
//! | [`busy`] | not to learn from: work in the worker's process, for the test that kills workers of a cluster |
//! | [`mill`] | not to learn from: work of all kinds, for the test that kills its process |

pub mod approval;
pub mod busy;
pub mod counter;
pub mod endure;
pub mod entity;
pub mod errand;
pub mod fan_out;
pub mod journey;
pub mod mill;
pub mod polling;
pub mod saga;
pub mod versions;

/// Returns where a program keeps its runs: the file or the URL that the command line names, or this URL.
pub fn url_or(default: &str) -> String {
    let is_url = |place: &str| {
        ["memory:", "sqlite:", "postgres:", "postgresql:", "temporal:"].iter().any(|scheme| place.starts_with(scheme))
    };
    match std::env::args().nth(1) {
        None => default.to_owned(),
        Some(url) if is_url(&url) => url,
        Some(path) => format!("sqlite:{path}"),
    }
}
