//! Every lock class of Dacapo, in the order in which a thread may take them. docs/engine.md shows this table.

use crate::Rank;

macro_rules! ranks {
    ($($(#[$doc:meta])* $name:ident = $kind:ident $number:literal $words:literal;)*) => {
        $($(#[$doc])* pub const $name: Rank = Rank::$kind($number, $words);)*

        /// The table, in order.
        pub const ALL: &[Rank] = &[$($name),*];
    };
}

ranks! {
    /// The runs in memory.
    RUN_CACHE = new 20 "engine: run cache";
    /// One run in memory: its inbox and its state while no turn is played.
    RUN = new 30 "engine: run";
    /// Runs on probation.
    PROBATION = new 40 "engine: probation";
    /// Pending activities.
    TASK_QUEUE = new 50 "engine: task queue";
    /// Local work that runs.
    LOCAL_WORK = new 60 "engine: local work";
    /// The state of a graceful shutdown.
    SHUTDOWN = new 65 "engine: shutdown";
    /// When the engine looks at each worker's zombies.
    ZOMBIE_ALARMS = new 70 "engine: zombie alarms";
    /// Nodes that wait for the ends of owned runs.
    WATCHERS = new 75 "engine: watchers";
    /// Callers that wait for a result or for an update.
    WAITERS = new 80 "engine: waiters";
    /// How many messages wait for runs that are not in memory.
    WAITING_COUNTS = new 85 "engine: waiting counts";
    /// The causes that were logged lately.
    STUCK_LOG = new 90 "engine: stuck log";
    /// The queues without a worker that were logged.
    QUEUE_LOG = new 95 "engine: queue log";
    /// The thread that reads timers of the store.
    REFILL = blocking 98 "engine: refill";
    /// Timers in memory.
    TIMERS = new 100 "engine: timers";
    /// Why the engine has stopped.
    HALTED = new 110 "engine: halted";
    /// The record from which inputs were last read. The store is read under it.
    INPUTS = blocking 120 "engine: inputs";
    /// Whether a deferred turn was refused.
    DEFERRED_TURNS = new 130 "engine: deferred turns";
    /// The answer to a start: its first turn gives it, or the deadlock watch.
    START_ANSWER = new 140 "engine: start answer";
    /// The work for a call of another node.
    CALLED = new 145 "engine: called";
    /// How many runs are open.
    OPEN_RUNS = new 148 "engine: open runs";
    /// The runs that a worker of a Temporal cluster has in memory.
    TEMPORAL_RUNS = new 150 "temporal: runs";
    /// The closures of side effects that are to be run.
    TEMPORAL_CLOSURES = new 152 "temporal: closures";
    /// The attempts that a worker of a Temporal cluster runs.
    TEMPORAL_ATTEMPTS = new 154 "temporal: attempts";
    /// The reply to an activation: the thread that plays it gives it, or the deadlock watch.
    TEMPORAL_REPLY = new 156 "temporal: reply";
    /// The transcript of a replay.
    TEMPORAL_TRANSCRIPT = new 157 "temporal: transcript";
    /// How far the shutdown of a worker is.
    TEMPORAL_SHUTDOWN = new 158 "temporal: shutdown";
    /// Code that a worker has asked to stop.
    ZOMBIES = new 200 "worker: zombies";
    /// One play of a run: its thread and the deadlock watch decide which of them ends it.
    PLAY = new 210 "worker: play";
    /// The activity of a thread of the pool.
    TURN_THREAD = new 220 "worker: turn thread";
    /// The queues and threads of the pool.
    TURN_POOL = new 230 "worker: turn pool";
    /// Turns that the deadlock watch looks at.
    DEADLOCK_WATCH = new 240 "worker: deadlock watch";
    /// Attempts that run on the runtime.
    ATTEMPTS = new 250 "worker: attempts";
    /// One attempt.
    ATTEMPT = new 260 "worker: attempt";
    /// The parts of an attempt.
    ATTEMPT_PARTS = new 270 "worker: attempt parts";
    /// When the host's clock wakes the engine.
    CLOCK = new 280 "host: clock";
    /// The connection that commits groups of writes, and why it commits no more. Commit callbacks run without it.
    STORE_WRITER = blocking 300 "store: writer";
    /// Writes that wait for the next group.
    STORE_QUEUE = new 310 "store: queue";
    /// The queues and the listener with which a node joined the others.
    NODE = new 312 "store: node";
    /// The nodes that share a store, and their notices.
    MEMBERS = new 315 "store: members";
    /// The notices and calls that a node of PostgreSQL is to send.
    STORE_NOTICES = new 316 "postgres: notices";
    /// The calls of a node of PostgreSQL that wait for an answer.
    STORE_CALLS = new 317 "postgres: calls";
    /// When a node of PostgreSQL looks at the others.
    STORE_PACE = new 318 "postgres: pace";
    /// Connections and tables that are read.
    STORE_READER = blocking 320 "store: reader";
    /// Notes of running code, beside the store.
    STORE_NOTES = blocking 330 "store: notes";
    /// A store's share of the lock on its database file.
    FILE_LOCK = blocking 340 "sqlite: file lock";
    /// The database files that this process has open. They are opened and closed under it.
    OPEN_FILES = blocking 350 "sqlite: open files";
    /// A store's lease.
    LEASE = blocking 360 "sqlite: lease";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_the_table_rise_and_their_names_differ() {
        assert!(ALL.is_sorted_by(|one, next| one.number() < next.number()));
        let names: std::collections::BTreeSet<_> = ALL.iter().map(|rank| rank.name()).collect();
        assert_eq!(names.len(), ALL.len());
    }
}
