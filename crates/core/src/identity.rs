//! Identity: which fields of a command decide its meaning, which only tune it, and which replay ignores.
//!
//! Replay is strict on meaning: another activity, input or duration is another program. It is lenient on tuning:
//! timeouts, retries, priorities and the like may change while a run is open; the recorded value holds for commands
//! that were recorded. Headers are transport, and replay ignores them.
//!
//! Payloads are compared by what they mean: by their digests where recorded and new payload have one of the same key,
//! otherwise by their bytes. The recorded bytes hold.

use std::fmt::Debug;
use std::time::Duration;

use crate::meaning::Meaning;
use crate::{CommandKind, DurationText, Failure, Outcome, Retry, Timeouts};

/// A field in which a new command differs from the recorded one.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    field: &'static str,
    /// The recorded value.
    pub recorded: String,
    /// The value that the code decided now.
    pub new: String,
    /// Whether the field decides the command's meaning.
    pub decides_meaning: bool,
    /// Whether a tuning difference causes a warning.
    pub warns: bool,
}

impl Difference {
    /// Returns the field's name.
    pub fn field(&self) -> &'static str {
        self.field
    }
}

/// The differences found so far between two commands of one kind.
struct Comparison(Vec<Difference>);

impl Comparison {
    fn add<T: PartialEq + Debug>(&mut self, field: &'static str, recorded: &T, new: &T, meaning: bool, warns: bool) {
        if recorded != new {
            let (recorded, new) = (format!("{recorded:?}"), format!("{new:?}"));
            self.0.push(Difference { field, recorded, new, decides_meaning: meaning, warns });
        }
    }

    fn meaning<T: PartialEq + Debug>(&mut self, field: &'static str, recorded: &T, new: &T) {
        self.add(field, recorded, new, true, true);
    }

    fn duration(&mut self, field: &'static str, recorded: Duration, new: Duration) {
        if recorded != new {
            let (recorded, new) = (DurationText(recorded).to_string(), DurationText(new).to_string());
            self.0.push(Difference { field, recorded, new, decides_meaning: true, warns: true });
        }
    }

    /// Adds a field whose debug output would not show durations as people write them.
    fn tuning_shown<T: PartialEq>(&mut self, field: &'static str, values: (&T, &T), show: impl Fn(&T) -> String) {
        let (recorded, new) = values;
        if recorded != new {
            let (recorded, new) = (show(recorded), show(new));
            self.0.push(Difference { field, recorded, new, decides_meaning: false, warns: true });
        }
    }

    fn time(&mut self, field: &'static str, recorded: &Option<Duration>, new: &Option<Duration>) {
        self.tuning_shown(field, (recorded, new), |time| time.map_or_else(none, |time| DurationText(time).to_string()));
    }

    fn timeouts(&mut self, recorded: &Timeouts, new: &Timeouts) {
        self.tuning_shown("timeouts", (recorded, new), timeouts_text);
    }

    fn retry(&mut self, recorded: &Option<Retry>, new: &Option<Retry>) {
        self.tuning_shown("retry", (recorded, new), |retry| retry.as_ref().map_or_else(none, retry_text));
    }

    fn tuning<T: PartialEq + Debug>(&mut self, field: &'static str, recorded: &T, new: &T) {
        self.add(field, recorded, new, false, true);
    }

    fn transport<T: PartialEq + Debug>(&mut self, field: &'static str, recorded: &T, new: &T) {
        self.add(field, recorded, new, false, false);
    }

    /// Adds a field that holds payloads, which are compared by what they mean: their bytes may differ.
    fn payloads<T: Meaning + PartialEq + Debug>(&mut self, field: &'static str, recorded: &T, new: &T) {
        if !recorded.has_meaning_of(new) {
            self.meaning(field, recorded, new);
        }
    }

    fn tuning_payloads<T: Meaning + PartialEq + Debug>(&mut self, field: &'static str, recorded: &T, new: &T) {
        if !recorded.has_meaning_of(new) {
            self.tuning(field, recorded, new);
        }
    }

    fn failure(&mut self, recorded: &Failure, new: &Failure) {
        let bare = |failure: &Failure| Failure { origin: None, ..failure.clone() };
        self.payloads("failure", &bare(recorded), &bare(new));
        self.transport("origin", &recorded.origin, &new.origin);
    }
}

fn none() -> String {
    "none".to_owned()
}

fn timeouts_text(timeouts: &Timeouts) -> String {
    let Timeouts { schedule_to_close, schedule_to_start, start_to_close, heartbeat } = timeouts;
    let all = [
        ("schedule_to_close", schedule_to_close),
        ("schedule_to_start", schedule_to_start),
        ("start_to_close", start_to_close),
        ("heartbeat", heartbeat),
    ];
    let set = all.into_iter().filter_map(|(name, time)| Some(format!("{name} {}", DurationText((*time)?))));
    let set: Vec<String> = set.collect();
    if set.is_empty() { none() } else { set.join(", ") }
}

fn retry_text(retry: &Retry) -> String {
    let Retry { first_pause, factor, max_pause, attempts, non_retryable } = retry;
    let (first_pause, max_pause) = (DurationText(*first_pause), DurationText(*max_pause));
    let not_retried: String = non_retryable.iter().map(|name| format!(", not {name}")).collect();
    format!("first_pause {first_pause}, factor {factor}, max_pause {max_pause}, attempts {attempts}{not_retried}")
}

/// Returns all fields in which two commands differ.
pub(crate) fn compare(recorded: &CommandKind, new: &CommandKind) -> Vec<Difference> {
    use CommandKind as C;
    let mut c = Comparison(Vec::new());
    match (recorded, new) {
        (C::Activity(a), C::Activity(b)) => {
            c.meaning("seq", &a.seq, &b.seq);
            c.meaning("id", &a.id, &b.id);
            c.meaning("activity", &a.activity, &b.activity);
            c.payloads("input", &a.input, &b.input);
            c.tuning("queue", &a.queue, &b.queue);
            c.timeouts(&a.timeouts, &b.timeouts);
            c.retry(&a.retry, &b.retry);
            c.tuning("cancel", &a.cancel, &b.cancel);
            c.tuning("priority", &a.priority, &b.priority);
            c.tuning("summary", &a.summary, &b.summary);
            c.transport("headers", &a.headers, &b.headers);
        }
        (C::LocalActivity(a), C::LocalActivity(b)) => {
            c.meaning("seq", &a.seq, &b.seq);
            c.meaning("id", &a.id, &b.id);
            c.meaning("activity", &a.activity, &b.activity);
            c.payloads("input", &a.input, &b.input);
            c.meaning("attempt", &a.attempt, &b.attempt);
            c.timeouts(&a.timeouts, &b.timeouts);
            c.retry(&a.retry, &b.retry);
            c.time("local_retry_threshold", &a.local_retry_threshold, &b.local_retry_threshold);
            c.tuning("cancel", &a.cancel, &b.cancel);
            c.tuning("summary", &a.summary, &b.summary);
            c.transport("first_scheduled", &a.first_scheduled, &b.first_scheduled);
            c.transport("headers", &a.headers, &b.headers);
        }
        (C::SideEffect(a), C::SideEffect(b)) => {
            c.meaning("seq", &a.seq, &b.seq);
            c.meaning("id", &a.id, &b.id);
            c.meaning("name", &a.name, &b.name);
            c.retry(&a.retry, &b.retry);
            c.timeouts(&a.timeouts, &b.timeouts);
            c.tuning("summary", &a.summary, &b.summary);
        }
        (C::Timer(a), C::Timer(b)) => {
            c.meaning("seq", &a.seq, &b.seq);
            c.duration("duration", a.duration, b.duration);
            c.tuning("summary", &a.summary, &b.summary);
        }
        (C::Child(a), C::Child(b)) => {
            c.meaning("seq", &a.seq, &b.seq);
            c.meaning("namespace", &a.namespace, &b.namespace);
            c.meaning("workflow_id", &a.workflow_id, &b.workflow_id);
            c.meaning("workflow", &a.workflow, &b.workflow);
            c.payloads("input", &a.input, &b.input);
            c.tuning("queue", &a.queue, &b.queue);
            c.time("execution_timeout", &a.execution_timeout, &b.execution_timeout);
            c.time("run_timeout", &a.run_timeout, &b.run_timeout);
            c.time("task_timeout", &a.task_timeout, &b.task_timeout);
            c.tuning("parent_close", &a.parent_close, &b.parent_close);
            c.tuning("id_reuse", &a.id_reuse, &b.id_reuse);
            c.retry(&a.retry, &b.retry);
            c.tuning("cron", &a.cron, &b.cron);
            c.tuning_payloads("memo", &a.memo, &b.memo);
            c.tuning("search_attributes", &a.search_attributes, &b.search_attributes);
            c.tuning("cancel", &a.cancel, &b.cancel);
            c.tuning("priority", &a.priority, &b.priority);
            c.tuning("summary", &a.summary, &b.summary);
            c.transport("headers", &a.headers, &b.headers);
        }
        (C::SignalExternal(a), C::SignalExternal(b)) => {
            c.meaning("seq", &a.seq, &b.seq);
            c.meaning("target", &a.target, &b.target);
            c.meaning("signal", &a.signal, &b.signal);
            c.payloads("input", &a.input, &b.input);
            c.transport("headers", &a.headers, &b.headers);
        }
        (C::CancelExternal(a), C::CancelExternal(b)) => {
            c.meaning("seq", &a.seq, &b.seq);
            c.meaning("target", &a.target, &b.target);
            c.tuning("reason", &a.reason, &b.reason);
        }
        (C::Nexus(a), C::Nexus(b)) => {
            c.meaning("seq", &a.seq, &b.seq);
            c.meaning("endpoint", &a.endpoint, &b.endpoint);
            c.meaning("service", &a.service, &b.service);
            c.meaning("operation", &a.operation, &b.operation);
            c.payloads("input", &a.input, &b.input);
            c.time("schedule_to_close", &a.schedule_to_close, &b.schedule_to_close);
            c.time("schedule_to_start", &a.schedule_to_start, &b.schedule_to_start);
            c.time("start_to_close", &a.start_to_close, &b.start_to_close);
            c.tuning("cancel", &a.cancel, &b.cancel);
            c.tuning("summary", &a.summary, &b.summary);
            c.transport("headers", &a.headers, &b.headers);
        }
        (C::Promise(a), C::Promise(b)) => {
            c.meaning("seq", &a.seq, &b.seq);
            c.meaning("id", &a.id, &b.id);
            c.meaning("name", &a.name, &b.name);
        }
        (C::Cancel(a), C::Cancel(b)) => {
            c.meaning("seq", &a.seq, &b.seq);
            c.meaning("operation", &a.operation, &b.operation);
            c.tuning("reason", &a.reason, &b.reason);
        }
        (C::Patch(a), C::Patch(b)) => {
            c.meaning("id", &a.id, &b.id);
            // Code moves from `patched` to `deprecate_patch` while runs are open: that is what `deprecate_patch` is
            // for.
            c.transport("deprecated", &a.deprecated, &b.deprecated);
        }
        (C::SearchAttributes(a), C::SearchAttributes(b)) => c.meaning("search_attributes", a, b),
        (C::Memo(a), C::Memo(b)) => c.payloads("memo", a, b),
        (C::State(a), C::State(b)) => {
            c.meaning("key", &a.key, &b.key);
            c.payloads("value", &a.value, &b.value);
        }
        (C::AcceptUpdate { update: a }, C::AcceptUpdate { update: b }) => c.meaning("update", a, b),
        (C::CompleteUpdate(a), C::CompleteUpdate(b)) => {
            c.meaning("update", &a.update, &b.update);
            match (&a.outcome, &b.outcome) {
                (Outcome::Failed(a), Outcome::Failed(b)) => c.failure(a, b),
                (a, b) => c.payloads("outcome", a, b),
            }
        }
        (C::Complete { result: a }, C::Complete { result: b }) => c.payloads("result", a, b),
        (C::Fail { failure: a }, C::Fail { failure: b })
        | (C::CancelRun { failure: a }, C::CancelRun { failure: b }) => {
            c.failure(a, b);
        }
        (C::ContinueAsNew(a), C::ContinueAsNew(b)) => {
            c.meaning("workflow", &a.workflow, &b.workflow);
            c.payloads("input", &a.input, &b.input);
            c.tuning("queue", &a.queue, &b.queue);
            c.time("run_timeout", &a.run_timeout, &b.run_timeout);
            c.time("task_timeout", &a.task_timeout, &b.task_timeout);
            c.tuning_payloads("memo", &a.memo, &b.memo);
            c.tuning("search_attributes", &a.search_attributes, &b.search_attributes);
            c.retry(&a.retry, &b.retry);
            c.time("start_delay", &a.start_delay, &b.start_delay);
            c.transport("headers", &a.headers, &b.headers);
        }
        (a, b) => c.meaning("command", &a.word(), &b.word()),
    }
    c.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_differences_are_written_as_people_write_them() {
        let secs = Duration::from_secs;
        let mut c = Comparison(Vec::new());
        c.duration("duration", secs(1_209_600), secs(90));
        c.time("run_timeout", &Some(Duration::from_millis(1_500)), &None);
        let bounded = Timeouts { start_to_close: Some(secs(60)), heartbeat: Some(secs(5)), ..Timeouts::default() };
        c.timeouts(&Timeouts::default(), &bounded);
        c.retry(&None, &Some(Retry::exponential().non_retryable("Declined")));
        let shown: Vec<_> = c.0.iter().map(|each| (each.field, &*each.recorded, &*each.new)).collect();
        let retry = "first_pause 1s, factor 2, max_pause 1m 40s, attempts 4, not Declined";
        assert_eq!(
            shown,
            [
                ("duration", "14d", "1m 30s"),
                ("run_timeout", "1.5s", "none"),
                ("timeouts", "none", "start_to_close 1m, heartbeat 5s"),
                ("retry", "none", retry),
            ]
        );
    }
}
