//! The state of an engine: one owner for each part of it, each with its own lock.
//!
//! Owners know nothing of each other. A change of several owners at once is an effect (`turn/effects.rs`), or a small
//! function of the folder that it belongs to; docs/engine.md lists the ranks of their locks.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dacapo_client::{Client, Error};
use dacapo_core::{Name, Pins, Timestamp};
use dacapo_store::{Notice, Recipient, RunNo, RunningNotes, SharedStore, Store};
use dacapo_sync::{Mutex, ranks};
use dacapo_worker::{DrainStep, TurnHost, describe_meters, meter};
use metrics::Histogram;

use crate::activity::local_work::LocalWork;
use crate::activity::task_queue::TaskQueue;
use crate::crash_guard::probation::Probation;
use crate::host::{Host, Steady, Work, WorkKind};
use crate::lifecycle::halted::Halted;
use crate::lifecycle::shutdown_state::ShutdownState;
use crate::lifecycle::sweeping::Sweeping;
use crate::lifecycle::zombie_alarms::ZombieAlarms;
use crate::nodes::common_time::CommonTime;
use crate::nodes::watchers::Watchers;
use crate::options::Options;
use crate::read::records::LastRecord;
use crate::report::queue_log::QueueLog;
use crate::report::run_meters::RunMeters;
use crate::report::stuck_log::StuckLog;
use crate::run::cache::RunCache;
use crate::run::cached_run::CachedRun;
use crate::run::waiters::Waiters;
use crate::run::waiting_counts::WaitingCounts;
use crate::store_guard::assert_may_use_store;
use crate::timer::wheel::{AlarmNo, Due, Timers};
use crate::workers::Workers;

/// The function that plays a run. The engine passes it in, so that an inbox need not know how turns are played.
pub(crate) type PlayRun = fn(&Arc<Shared>, Arc<CachedRun>);

/// The function that makes the client for a call of another node.
pub(crate) type MakeClient = fn(&Arc<Shared>) -> Box<dyn Client>;

/// Functions that parts of the engine call without knowing the parts that have them.
pub(crate) struct Entries {
    pub(crate) play_run: PlayRun,
    pub(crate) claim: fn(&Arc<Shared>),
    pub(crate) client: MakeClient,
}

/// The state that all parts of an engine share.
pub(crate) struct Shared {
    store: Arc<dyn Store>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) options: Options,
    pub(crate) workers: Workers,
    pub(crate) runs: RunCache,
    pub(crate) tasks: TaskQueue,
    pub(crate) local: LocalWork,
    pub(crate) timers: Timers,
    pub(crate) waiters: Waiters,
    pub(crate) probation: Probation,
    pub(crate) waiting_counts: WaitingCounts,
    pub(crate) shutdown: ShutdownState,
    pub(crate) zombie_alarms: ZombieAlarms,
    pub(crate) stuck_log: StuckLog,
    pub(crate) queue_log: QueueLog,
    pub(crate) sweeping: Sweeping,
    pub(crate) halted: Halted,
    pub(crate) watchers: Watchers,
    pub(crate) common_time: CommonTime,
    /// The record from which the input of an activity was last read.
    pub(crate) last_record: Mutex<LastRecord>,
    pub(crate) commit_seconds: Histogram,
    pub(crate) run_meters: RunMeters,
    pub(crate) play_run: PlayRun,
    /// Takes tasks that no node has.
    pub(crate) claim: fn(&Arc<Shared>),
    /// Makes the client that carries out a call of another node.
    pub(crate) client: MakeClient,
    /// The host of the turn driver; set when the engine is opened.
    pub(crate) turn_host: OnceLock<Arc<dyn TurnHost>>,
}

impl Shared {
    pub(crate) fn new(store: Arc<dyn Store>, host: Arc<dyn Host>, options: Options, entries: Entries) -> Self {
        let Entries { play_run, claim, client } = entries;
        describe_meters();
        let places = options.queues.iter().map(|(queue, values)| (queue.clone(), values.max_concurrent_activities));
        Self {
            store,
            host,
            run_meters: RunMeters::new(options.registry.workflows()),
            workers: Workers::new(&options.queues, &options.default_queue, &options.registry),
            runs: RunCache::new(options.cache),
            tasks: TaskQueue::new(places),
            local: LocalWork::new(),
            timers: Timers::new(),
            waiters: Waiters::new(),
            probation: Probation::new(),
            waiting_counts: WaitingCounts::new(),
            shutdown: ShutdownState::new(),
            zombie_alarms: ZombieAlarms::new(),
            stuck_log: StuckLog::new(),
            queue_log: QueueLog::new(),
            sweeping: Sweeping::default(),
            halted: Halted::new(),
            watchers: Watchers::new(),
            common_time: CommonTime::default(),
            last_record: Mutex::new(ranks::INPUTS, LastRecord::default()),
            commit_seconds: meter::COMMIT_SECONDS.histogram(&[]),
            play_run,
            claim,
            client,
            turn_host: OnceLock::new(),
            options,
        }
    }

    /// The store, for a thread that may block. Builds with debug assertions panic if this thread must not.
    #[track_caller]
    pub(crate) fn store(&self) -> &dyn Store {
        assert_may_use_store();
        &*self.store
    }

    /// The store, for a reader that looks itself whether its thread may block.
    pub(crate) fn store_for_readers(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// The interface of a store that several nodes share. None: this process serves the store alone. Of its calls,
    /// those that read the store are for threads that may block.
    pub(crate) fn nodes(&self) -> Option<&dyn SharedStore> {
        self.store.shared()
    }

    /// Whether this process plays the run.
    pub(crate) fn owns(&self, run: RunNo) -> bool {
        self.nodes().is_none_or(|nodes| nodes.owns(run))
    }

    /// Notifies the node that owns a run.
    pub(crate) fn notify_owner(&self, run: RunNo, notice: Notice) {
        if let Some(nodes) = self.nodes() {
            nodes.notify(Recipient::OwnerOf(run), notice);
        }
    }

    /// Notifies the nodes whose callers wait for a run that it has closed or is stuck.
    pub(crate) fn tell_watchers(&self, run: RunNo) {
        let Some(nodes) = self.nodes() else { return };
        for node in self.watchers.take(run) {
            nodes.notify(Recipient::Node(node), Notice::Changed(run));
        }
    }

    /// Whether a worker serves this queue: one of this process, or of another node.
    pub(crate) fn is_served(&self, queue: &str) -> bool {
        self.workers.serve(queue) || self.nodes().is_some_and(|nodes| nodes.is_served(queue))
    }

    /// The notes of which code runs. A note never blocks.
    pub(crate) fn notes(&self) -> &dyn RunningNotes {
        &*self.store
    }

    /// Engine time: the host's, moved to the clock that all nodes share. It never goes back.
    pub(crate) fn now(&self) -> Timestamp {
        self.common_time.at(self.host.now())
    }

    /// Engine time and steady time.
    pub(crate) fn clock(&self) -> (Timestamp, Steady) {
        (self.now(), self.host.steady_now())
    }

    /// Arms an alarm of this process, so long from now.
    pub(crate) fn arm_in(&self, time: Duration, due: Due) -> AlarmNo {
        let (now, steady) = self.clock();
        let (alarm, next) = self.timers.arm(steady.after(time), due, (now, steady));
        if let Some(next) = next {
            self.host.wake_at(next);
        }
        alarm
    }

    /// Ends a write that a shutdown waits for, and has the shutdown checked if one has begun.
    pub(crate) fn end_write(&self) {
        self.shutdown.end_write();
        if self.shutdown.has_begun() {
            self.arm_in(Duration::ZERO, Due::Drain(DrainStep::StopWaiting));
        }
    }

    /// Fails with the reason if the engine has stopped.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.halted.reason().map_or(Ok(()), Err)
    }

    /// Runs work on a thread that may block. The kind and the run, if it is for one, are its label.
    pub(crate) fn later(
        self: &Arc<Self>,
        kind: WorkKind,
        run: Option<RunNo>,
        work: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) {
        let this = self.clone();
        self.host.perform(Work::new(kind, run, None, move || work(&this)));
    }

    /// Drops something that holds user code, on a thread that runs user code.
    pub(crate) fn drop_later(self: &Arc<Self>, value: impl Send + 'static) {
        self.later(WorkKind::Evict, None, move |_| drop(value));
    }

    /// The host of the turn driver.
    pub(crate) fn turn_host(&self) -> &Arc<dyn TurnHost> {
        self.turn_host.get().expect("an engine has a host for turns since it was opened")
    }

    /// The pins that new runs of this workflow keep for life.
    pub(crate) fn pins_of(&self, workflow: &str) -> Pins {
        let pins = self.options.pins.iter().find(|(name, _): &&(Name, Pins)| *name == workflow);
        pins.map(|(_, pins)| pins.clone()).unwrap_or_default()
    }
}
