//! Scripts: one line for each activation, jobs separated by commas.
//!
//! ```text
//! start = input                    the run begins
//! resolve NAME = value             the first pending operation of that name (or #SEQ) gets this result
//! fail NAME: message               … fails
//! drop NAME: message               … ends as cancelled
//! fire, fire 5s, fire #3           a timer fires
//! started NAME = run id            a child or nexus operation starts
//! refused NAME: message            … cannot be started
//! delivered NAME                   an external signal or cancel arrived
//! lost NAME: message               … could not
//! backoff NAME                     a local activity wants a pause of 90 s before attempt 2
//! signal NAME = value
//! update NAME ID = value
//! cancel: reason
//! patch ID, seed NUMBER
//! at 90s: …                        the turn's time; otherwise turn n is played at n seconds
//! query NAME = value               an activation of its own
//! evict                            an activation of its own
//! ```

use std::time::Duration;

/// One activation.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A turn, at this time if the script gives one.
    Turn(Option<Duration>, Vec<JobLine>),
    /// A query.
    Query(String, String),
    /// An eviction.
    Evict,
}

/// A job as a script writes it: a verb, a subject, and a value or a message.
#[derive(Clone, Debug, PartialEq)]
pub struct JobLine {
    /// The verb: `resolve`, `signal`, …
    pub verb: String,
    /// The name of the operation, signal, update or patch.
    pub subject: String,
    /// The text behind `=` or `:`.
    pub value: Option<String>,
}

/// A parsed script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script(pub Vec<Step>);

impl Script {
    /// Parses a script. Panics on a line that makes no sense, because that is a mistake of the test.
    pub fn parse(text: &str) -> Self {
        Self(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(parse_line).collect())
    }
}

fn parse_line(line: &str) -> Step {
    if line == "evict" {
        return Step::Evict;
    }
    if let Some(query) = line.strip_prefix("query ") {
        let (name, value) = query.split_once(" = ").unwrap_or((query, ""));
        return Step::Query(name.to_owned(), value.to_owned());
    }
    let (at, jobs) = match line.strip_prefix("at ").and_then(|rest| rest.split_once(": ")) {
        Some((at, jobs)) => (Some(parse_seconds(at)), jobs),
        None => (None, line),
    };
    Step::Turn(at, jobs.split(", ").map(parse_job).collect())
}

fn parse_seconds(text: &str) -> Duration {
    let seconds = text.strip_suffix('s').and_then(|number| number.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or_else(|| panic!("{text:?} is no time: write it as 90s")))
}

fn parse_job(job: &str) -> JobLine {
    let (head, value) = match job.split_once(" = ").or_else(|| job.split_once(": ")) {
        Some((head, value)) => (head, Some(value.to_owned())),
        None => (job, None),
    };
    let (verb, subject) = head.split_once(' ').unwrap_or((head, ""));
    JobLine { verb: verb.to_owned(), subject: subject.to_owned(), value }
}
