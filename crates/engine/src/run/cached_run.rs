//! A run as the engine holds it in memory: its inbox, and its code and state while no turn is played.
//!
//! ```text
//!          a message comes            a thread is free
//!   Idle ──────────────────▶ Queued ──────────────────▶ Busy ──▶ Idle | Queued   its turn is committed
//!                              ▲                          │
//!                              │ its pause is over        ▼
//!                              └────────────────────── Stuck                      it cannot be played now
//! ```
//!
//! The run's code and open operations ([`Playable`]) are outside the lock while a turn is played and committed, so that a
//! sender never waits for user code or for the disk.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

use dacapo_core::{Activation, Job, Payload, Run, Seq, Timestamp};
use dacapo_store::{MessageNo, RunNo};
use dacapo_sync::{Mutex, MutexGuard, ranks};
use dacapo_worker::{Level, RunName, StuckPlay, Worker, silence};

use crate::run::info::RunInfo;
use crate::run::message::{Message, Request, ResetRequest};
use crate::run::open_operations::OpenOperations;
use crate::turn::plan::Plan;

/// A run that can be played.
pub(crate) struct Playable {
    pub(crate) info: Arc<RunInfo>,
    pub(crate) run: Run,
    pub(crate) open: OpenOperations,
    /// Turns that were played and not yet submitted: they asked for nothing but local work.
    pub(crate) deferred: Vec<Plan>,
    /// The snapshot that recorded turns published and that the store does not have: the next turn stores it.
    pub(crate) unstored_snapshot: Option<Box<Payload>>,
    /// The number of this play: a run is taken from a play that does not return.
    pub(crate) play: u64,
}

impl Playable {
    /// Creates a run that was played up to its last recorded turn.
    pub(crate) fn new(info: Arc<RunInfo>, run: Run, open: OpenOperations, play: u64) -> Self {
        Self { info, run, open, deferred: Vec::new(), unstored_snapshot: None, play }
    }

    /// The number of the first turn that is not committed. Turns that are deferred are not in the store yet.
    pub(crate) fn next_commit(&self) -> u64 {
        self.deferred.first().map_or(self.open.next_turn, |plan| plan.write.turn)
    }
}

impl Drop for Playable {
    fn drop(&mut self) {
        // Suppresses logging while a run is evicted: its destructors may log.
        if let Some(_silence) = silence() {
            self.run.activate(Activation::Evict);
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PlayState {
    #[default]
    Idle,
    Queued,
    Busy,
    /// It is not played for messages: its turn could not be played or stored, it is delayed or quarantined, or it waits for
    /// its probation. An alarm, an operator or the run before it has it played again.
    Stuck,
}

#[derive(Default)]
pub(crate) struct RunState {
    pub(crate) play_state: PlayState,
    inbox: VecDeque<Message>,
    requests: VecDeque<Asked>,
    /// The number of messages that ever came, and (`taken`) the number of those that were taken.
    came: u64,
    taken: u64,
    pub(crate) resets: VecDeque<ResetRequest>,
    /// Local work that is to be tried again, and the number of the attempt.
    pub(crate) retries: Vec<(Seq, u32)>,
    /// Whether deferred turns are to be committed now.
    pub(crate) flush: bool,
    /// Whether the inbox has all messages that wait in the store: the run began here, or they were read.
    pub(crate) has_all: bool,
    /// How often it was said that another node has stored messages, and (`heeded`) after which of these times the store was read.
    notices: u64,
    heeded: u64,
    /// Whether the timers with which it began are in memory, if it has had no turn yet.
    pub(crate) has_timers: bool,
    /// Whether the next turn takes all messages, because one that took fewer could not close the run.
    pub(crate) takes_all: bool,
    /// The messages that were taken since the last commit.
    uncommitted: Vec<Message>,
    /// The number of plays that were given up on.
    pub(crate) play: u64,
    /// The play that was given up on last.
    pub(crate) stuck_play: StuckPlay,
    /// How often in a row the run could not be played.
    pub(crate) failed_plays: u32,
    /// Counts the run among the stuck runs, until it goes on.
    pub(crate) stuck: Option<Level>,
    /// Why it is stuck. The row has it a moment later.
    pub(crate) stuck_reason: Option<Box<str>>,
    /// Whether it must stay in memory although it is idle.
    pub(crate) is_pinned: bool,
    /// The names of the run, if a turn that left it open was committed here. This process learns of the run's end, after
    /// the entry is gone.
    pub(crate) open_as: Option<Arc<RunName>>,
    /// The time before which it is not played again.
    pub(crate) stuck_until: Timestamp,
    /// Messages that were read when the run was loaded: if their senders' calls bring them as well, these are the same
    /// messages.
    read: BTreeSet<MessageNo>,
    /// None while the run is played, and when its code is not in memory.
    pub(crate) playable: Option<Box<Playable>>,
    /// Whether the entry has left the cache: a thread that holds it must look the run up again.
    pub(crate) is_gone: bool,
}

/// A request that waits.
struct Asked {
    /// The number of messages that come before it.
    after: u64,
    /// The number of notices before it: their messages come before it too.
    notices: u64,
    request: Request,
}

/// The messages and notices that were in memory before the store was read, for [`RunState::reread`].
pub(crate) struct Before {
    stored: BTreeSet<MessageNo>,
    notices: u64,
}

impl RunState {
    /// Notes that the run goes on and is no longer stuck.
    pub(crate) fn unstick(&mut self) {
        self.failed_plays = 0;
        self.stuck = None;
        self.stuck_reason = None;
    }

    /// Whether there is a reason to play it.
    pub(crate) fn has_work(&self) -> bool {
        !self.inbox.is_empty() || !self.retries.is_empty() || self.is_asked() || self.flush || self.rereads()
    }

    /// Whether a caller waits for an answer or a reset.
    pub(crate) fn is_asked(&self) -> bool {
        !self.requests.is_empty() || !self.resets.is_empty()
    }

    /// Whether a caller waits for an answer.
    pub(crate) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Whether turns are deferred: played, and not yet committed.
    pub(crate) fn defers_turns(&self) -> bool {
        self.playable.as_ref().is_some_and(|playable| !playable.deferred.is_empty())
    }

    /// Whether nothing would be lost if the run left memory.
    pub(crate) fn has_nothing_uncommitted(&self) -> bool {
        self.uncommitted.is_empty() && !self.defers_turns()
    }

    /// Whether it may leave memory now.
    pub(crate) fn may_leave(&self) -> bool {
        self.play_state == PlayState::Idle && !self.has_work() && self.has_nothing_uncommitted() && !self.is_pinned
    }

    /// The number of messages that wait. None if the store may have more of them than the inbox.
    pub(crate) fn waiting(&self) -> Option<usize> {
        self.has_all.then_some(self.inbox.len())
    }

    /// Whether the result of this local work is in the inbox.
    pub(crate) fn has_local(&self, seq: Seq) -> bool {
        self.inbox.iter().any(|message| matches!(message, Message::Local { seq: of, .. } if *of == seq))
    }

    /// Puts a message into the inbox, unless loading the run was faster and read it from the store.
    pub(crate) fn push(&mut self, message: Message) {
        if message.stored().is_some_and(|no| self.read.remove(&no)) {
            return;
        }
        self.came += 1;
        self.inbox.push_back(message);
    }

    /// The number of stored messages that are in memory and, as far as it is known, not taken.
    pub(crate) fn known(&self) -> usize {
        self.inbox.iter().chain(&self.uncommitted).filter(|message| message.stored().is_some()).count()
    }

    /// Whether the result of this activity waits here, or for the commit of a turn.
    pub(crate) fn has_result(&self, of: Seq) -> bool {
        let is_result = |message: &Message| matches!(message, Message::Result { seq, .. } if *seq == of);
        self.inbox.iter().chain(&self.uncommitted).any(is_result)
    }

    /// Puts a request behind the messages that came before it.
    pub(crate) fn ask(&mut self, request: Request) {
        self.requests.push_back(Asked { after: self.came, notices: self.notices, request });
    }

    /// Notes that another node has stored messages: their senders were answered, and may count on them from now on.
    pub(crate) fn note_stored(&mut self) {
        self.notices += 1;
    }

    /// Whether its messages are to be read again, because another node has stored some.
    pub(crate) fn rereads(&self) -> bool {
        self.heeded < self.notices
    }

    /// Notes what is in memory before the store is read.
    pub(crate) fn begin_to_reread(&self) -> Before {
        Before { stored: self.inbox.iter().filter_map(Message::stored).collect(), notices: self.notices }
    }

    /// Whether another node has stored messages since, which a read of the store may lack.
    pub(crate) fn is_outdated(&self, before: &Before) -> bool {
        before.notices < self.notices
    }

    /// Notes that the store was read, although its messages are of no use.
    pub(crate) fn has_reread(&mut self, before: &Before) {
        self.heeded = self.heeded.max(before.notices);
    }

    /// Replaces the stored messages in the inbox by those that the store has. Messages that came since the store was read stay,
    /// and messages that the store no longer has are dropped. Messages that are not stored stay behind.
    pub(crate) fn reread(&mut self, before: &Before, stored: Vec<(MessageNo, Job)>) {
        let in_store: BTreeSet<MessageNo> = stored.iter().map(|(no, _)| *no).collect();
        let mut brought = BTreeSet::new();
        self.inbox.retain(|message| match message.stored() {
            Some(no) => {
                brought.insert(no);
                !before.stored.contains(&no) && !in_store.contains(&no)
            }
            None => true,
        });
        self.read.extend(in_store.iter().filter(|no| !brought.contains(no)));
        for (no, job) in stored.into_iter().rev() {
            self.inbox.push_front(Message::Stored { no, job });
        }
        self.has_all = true;
        self.has_reread(before);
        self.recount();
        // Messages that were stored before a request was made may only be known now.
        for asked in &mut self.requests {
            asked.after = self.came;
        }
    }

    /// Makes requests wait for no more messages than there are.
    fn recount(&mut self) {
        self.came = self.taken + self.inbox.len() as u64;
        for asked in &mut self.requests {
            asked.after = asked.after.min(self.came);
        }
    }

    /// Takes at most so many messages.
    pub(crate) fn take(&mut self, most: usize) -> Vec<Message> {
        let most = if std::mem::take(&mut self.takes_all) { usize::MAX } else { most.max(1) };
        let count = self.inbox.len().min(most);
        self.taken += count as u64;
        self.inbox.drain(..count).collect()
    }

    /// Notes messages that a turn takes which is not committed yet.
    pub(crate) fn note_taken(&mut self, messages: &[Message]) {
        self.uncommitted.extend_from_slice(messages);
    }

    /// Forgets the last so many messages that were noted: their turn left nothing to commit.
    pub(crate) fn forget_taken(&mut self, count: usize) {
        let left = self.uncommitted.len().saturating_sub(count);
        self.uncommitted.truncate(left);
    }

    /// Takes the messages that were noted since the last commit: no commit of them is awaited any more.
    pub(crate) fn take_uncommitted(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.uncommitted)
    }

    /// Puts back messages of a turn that was not committed.
    pub(crate) fn put_back(&mut self, messages: Vec<Message>) {
        self.taken -= messages.len() as u64;
        for message in messages.into_iter().rev() {
            self.inbox.push_front(message);
        }
    }

    /// Puts back all messages that were taken since the last commit.
    pub(crate) fn put_back_all(&mut self) {
        let uncommitted = self.take_uncommitted();
        self.put_back(uncommitted);
    }

    /// Whether the result of an activity waits here, which is in no row of the store.
    pub(crate) fn has_results(&self) -> bool {
        self.inbox.iter().any(|message| matches!(message, Message::Result { .. }))
    }

    /// Takes the results of activities, which are in no row of the store. Other messages stay.
    pub(crate) fn take_results(&mut self) -> Vec<Message> {
        let is_result = |message: &Message| matches!(message, Message::Result { .. });
        let (results, rest) = std::mem::take(&mut self.inbox).into_iter().partition(is_result);
        self.inbox = rest;
        self.recount();
        results.into()
    }

    /// Drops the results of local work, which is given up and done again.
    pub(crate) fn drop_local_results(&mut self) {
        self.inbox.retain(|message| !matches!(message, Message::Local { .. }));
        self.recount();
    }

    /// Takes all messages: the run is not to be played now, or never again.
    pub(crate) fn take_inbox(&mut self) -> Vec<Message> {
        let messages = std::mem::take(&mut self.inbox).into();
        self.has_all = false;
        // The next load reads all of them.
        self.heeded = self.notices;
        self.recount();
        messages
    }

    /// Takes the requests for which all earlier messages were taken.
    pub(crate) fn take_due_requests(&mut self) -> Vec<Request> {
        let is_due = |asked: &&Asked| asked.after <= self.taken && asked.notices <= self.heeded;
        let due = self.requests.iter().take_while(is_due).count();
        self.requests.drain(..due).map(|asked| asked.request).collect()
    }

    /// Takes all requests.
    pub(crate) fn take_requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests).into_iter().map(|asked| asked.request).collect()
    }
}

/// A run in memory.
pub(crate) struct CachedRun {
    pub(crate) no: RunNo,
    /// The worker of its queue; not known before its queue is.
    worker: OnceLock<Arc<Worker>>,
    state: Mutex<RunState>,
}

impl CachedRun {
    pub(crate) fn new(no: RunNo) -> Arc<Self> {
        Arc::new(Self { no, worker: OnceLock::new(), state: Mutex::new(ranks::RUN, RunState::default()) })
    }

    /// The worker that plays it, if its queue is known.
    pub(crate) fn worker(&self) -> Option<&Arc<Worker>> {
        self.worker.get()
    }

    /// Sets the worker that plays it. A run keeps its queue for life.
    pub(crate) fn is_played_by(&self, worker: &Arc<Worker>) {
        let _ = self.worker.set(worker.clone());
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, RunState> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(no: i64) -> (MessageNo, Job) {
        (MessageNo(no), Job::Cancel { reason: no.to_string() })
    }

    fn message(no: i64) -> Message {
        let (no, job) = stored(no);
        Message::Stored { no, job }
    }

    fn numbers(state: &RunState) -> Vec<i64> {
        state.inbox.iter().map(|message| message.stored().map_or(-1, |no| no.0)).collect()
    }

    #[test]
    fn messages_read_from_the_store_replace_those_that_were_there_and_keep_those_that_came_since() {
        let mut state = RunState::default();
        [1, 2].into_iter().for_each(|no| state.push(message(no)));
        let before = state.begin_to_reread();
        // While the store is read: 4 is committed and brought, 3 is committed and not brought yet.
        state.push(message(4));
        state.push(Message::Timer { seq: Seq(1), due: Timestamp::default() });
        state.reread(&before, [2, 3].map(stored).to_vec());
        assert_eq!(numbers(&state), [2, 3, 4, -1], "1 was taken by a turn of an earlier play");
        state.push(message(3));
        assert_eq!(numbers(&state), [2, 3, 4, -1], "3 was read before its sender's call brought it");
        state.push(message(5));
        assert_eq!(numbers(&state), [2, 3, 4, -1, 5]);
    }

    #[test]
    fn a_request_waits_for_the_messages_that_came_before_it() {
        let mut state = RunState::default();
        state.push(message(1));
        let (answer, _answered) = tokio::sync::oneshot::channel();
        state.ask(Request::Inspect(answer));
        state.push(message(2));
        assert!(state.take_due_requests().is_empty());
        state.take(1);
        assert_eq!(state.take_due_requests().len(), 1);
    }

    /// The run is not in memory when a caller asks: the messages that the store holds for it were acknowledged before.
    #[test]
    fn a_request_waits_for_messages_that_only_the_store_knew_of() {
        let mut state = RunState::default();
        let (answer, _answered) = tokio::sync::oneshot::channel();
        state.ask(Request::Inspect(answer));
        state.reread(&state.begin_to_reread(), vec![stored(1)]);
        assert!(state.take_due_requests().is_empty());
        state.take(1);
        assert_eq!(state.take_due_requests().len(), 1);
    }

    #[test]
    fn a_request_waits_until_messages_are_read_of_which_a_notice_came_before_it() {
        let mut state = RunState::default();
        let ask = |state: &mut RunState| state.ask(Request::Inspect(tokio::sync::oneshot::channel().0));
        state.note_stored();
        ask(&mut state);
        let before = state.begin_to_reread();
        state.note_stored();
        ask(&mut state);
        state.reread(&before, Vec::new());
        assert_eq!(state.take_due_requests().len(), 1, "the store was read before the second notice");
        assert!(state.rereads());
        state.reread(&state.begin_to_reread(), Vec::new());
        assert_eq!((state.take_due_requests().len(), state.rereads()), (1, false));
    }

    #[test]
    fn inbox_counts_for_the_limit_only_while_it_has_all_stored_messages() {
        let mut state = RunState::default();
        state.push(message(2));
        assert_eq!(state.waiting(), None, "the store may have others");
        state.reread(&state.begin_to_reread(), vec![stored(1), stored(2)]);
        assert_eq!(state.waiting(), Some(2), "the store is not asked");
        state.take_inbox();
        assert_eq!(state.waiting(), None);
    }

    /// It was brought into memory again and again, because it was to read its messages again and was not played.
    #[test]
    fn run_that_is_turned_away_with_a_notice_of_messages_may_leave_memory() {
        let mut state = RunState::default();
        state.note_stored();
        assert!(!state.may_leave(), "there are messages to read");
        state.take_inbox();
        assert!(state.may_leave());
    }

    #[test]
    fn results_go_to_the_store_and_local_outcomes_are_void_when_a_run_is_stuck() {
        let mut state = RunState::default();
        state.push(Message::Local { seq: Seq(1), resolution: dacapo_core::Resolution::Timer, retried: None });
        state.push(message(1));
        let outcome = dacapo_core::Outcome::Completed(dacapo_core::Payload::default());
        state.push(Message::Result { task: dacapo_store::TaskNo(7), seq: Seq(2), outcome, retried: None });
        let results = state.take_results();
        assert!(matches!(&results[..], [Message::Result { .. }]));
        assert!(state.has_local(Seq(1)), "it is dropped only where that work is given up");
        state.drop_local_results();
        assert_eq!((state.inbox.len(), numbers(&state)), (1, vec![1]));
    }
}
