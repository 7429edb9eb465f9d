//! All terminations of one queue: the code that was asked to stop, the code that runs on, and the limit for that.
//!
//! Every call only decides. The decisions are returned as [`Effects`], which the owner performs after it has released
//! its lock: code that is stopped may end at once, and its end is reported here. Nothing here has a clock or a thread,
//! and no thread is ever killed: code that runs on is counted and reported, and too much of it shuts the process down
//! in an orderly way.
//!
//! Code becomes a zombie when it blocks where no cancellation can wake it (a lock, a socket without a timeout, native
//! code), when it loops without calling its ctx or awaiting, when it ignores its cancellation, or when the machine is
//! so loaded that the code does not get to run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{Name, Timestamp};

use crate::run_name::RunName;
use crate::{Act, ActivityInfo, Interrupt, Termination, TerminationState, ZombieSettings};

/// The code that is to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// Whether it is a turn or an attempt.
    pub kind: EntityKind,
    /// The workflow id, the run id and, for an activity, its id, with slashes between.
    pub id: String,
    /// The type of the workflow or activity.
    pub type_name: Name,
    /// The queue that it came through.
    pub queue: Name,
}

/// The kind of code that is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityKind {
    /// A turn of a workflow.
    Turn,
    /// An attempt of an activity.
    Activity,
}

impl Entity {
    /// Returns the entity of a run's turn.
    #[doc(hidden)]
    pub fn turn(run: &RunName) -> Self {
        let id = format!("{}/{}", run.workflow_id, run.run_id);
        Self { kind: EntityKind::Turn, id, type_name: run.workflow.clone(), queue: run.queue.clone() }
    }

    /// Returns the entity of an attempt.
    #[doc(hidden)]
    pub fn activity(info: &ActivityInfo) -> Self {
        let id = format!("{}/{}/{}", info.workflow_id, info.run_id, info.activity_id);
        Self { kind: EntityKind::Activity, id, type_name: info.activity.clone(), queue: info.queue.clone() }
    }
}

impl fmt::Display for EntityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Turn => "turn",
            Self::Activity => "activity",
        })
    }
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({}) of queue {:?}", self.kind, self.id, self.type_name, &*self.queue)
    }
}

/// The id of a termination among those of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TerminationId(u64);

/// All terminations of one queue.
pub struct Zombies {
    settings: ZombieSettings,
    last: u64,
    under_way: BTreeMap<TerminationId, Target>,
    /// When each termination has something to do next.
    due: BTreeSet<(Timestamp, TerminationId)>,
    count: usize,
    /// Whether the application was told to shut down.
    told: bool,
}

struct Target {
    entity: Entity,
    code: Arc<dyn Interrupt>,
    reason: Arc<str>,
    termination: Termination,
}

impl Zombies {
    /// Creates an empty list of terminations, with these settings.
    pub fn new(settings: ZombieSettings) -> Self {
        Self { settings, last: 0, under_way: BTreeMap::new(), due: BTreeSet::new(), count: 0, told: false }
    }

    /// Asks code to stop.
    pub fn request(
        &mut self,
        entity: Entity,
        code: Arc<dyn Interrupt>,
        reason: &str,
        now: Timestamp,
    ) -> (TerminationId, Effects) {
        let (termination, acts) = Termination::begin(now, &self.settings);
        self.last += 1;
        let id = TerminationId(self.last);
        self.due.extend(termination.next().map(|at| (at, id)));
        self.under_way.insert(id, Target { entity, code, reason: reason.into(), termination });
        let mut effects = Effects::default();
        self.take(id, &acts, now, &mut effects);
        (id, effects)
    }

    /// Performs what is due by now.
    pub fn tick(&mut self, now: Timestamp) -> Effects {
        let mut effects = Effects::default();
        while let Some((_, id)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.pop_first();
            let Some(target) = self.under_way.get_mut(&id) else { continue };
            let acts = target.termination.tick(now);
            self.due.extend(target.termination.next().map(|at| (at, id)));
            self.take(id, &acts, now, &mut effects);
        }
        effects
    }

    /// Ends a termination: the code has ended. A second call changes nothing.
    pub fn finished(&mut self, id: TerminationId, now: Timestamp) -> Effects {
        let mut effects = Effects::default();
        let Some(target) = self.under_way.get_mut(&id) else { return effects };
        self.due.remove(&(target.termination.next().unwrap_or_default(), id));
        let acts = target.termination.finished();
        self.take(id, &acts, now, &mut effects);
        effects.gone = self.under_way.remove(&id);
        effects
    }

    /// Returns when [`Self::tick`] has something to do.
    pub fn next(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Returns how many zombies there are, with those that leaked.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns how many were asked to stop and still have time to.
    pub fn terminating(&self) -> usize {
        self.in_state(TerminationState::Terminating)
    }

    fn in_state(&self, state: TerminationState) -> usize {
        self.under_way.values().filter(|target| target.termination.state() == state).count()
    }

    /// Returns the health of the queue.
    pub fn health(&self) -> Health {
        let entities = self.under_way.values().map(|target| StoppingCode {
            entity: target.entity.clone(),
            state: target.termination.state(),
            since: target.termination.since(),
            interrupts: target.termination.interrupts(),
            place: target.code.place(),
        });
        Health {
            zombies: self.count,
            leaked: self.in_state(TerminationState::Leaked),
            terminating: self.terminating(),
            entities: entities.collect(),
            ended: None,
        }
    }

    /// Returns whether a shutdown that has waited for terminations since `since` goes on waiting.
    pub fn wait(&self, since: Timestamp, now: Timestamp) -> ShutdownWait {
        let until = since.after(self.settings.shutdown_timeout);
        match (self.under_way.is_empty(), until > now) {
            (true, _) => ShutdownWait::Over,
            (false, true) => ShutdownWait::Until(until),
            (false, false) => ShutdownWait::TooLong(self.health()),
        }
    }

    fn take(&mut self, id: TerminationId, acts: &[Act], now: Timestamp, effects: &mut Effects) {
        let Some(target) = self.under_way.get(&id) else { return };
        for act in acts {
            match act {
                Act::Cancel => {
                    effects.actions.push(Action::Cancel(target.code.clone(), target.reason.clone()));
                }
                Act::Interrupt => effects.actions.push(Action::Interrupt(target.code.clone())),
                Act::CountZombie => {
                    self.count += 1;
                    let max = self.settings.max_count;
                    if max > 0 && self.count >= max && !self.told {
                        self.told = true;
                        effects.limit = ZombieLimit::Reached;
                    }
                }
                Act::UncountZombie => self.count -= 1,
                Act::ReportZombie => effects.report(ZombieReport::Zombie, target, self.count, now),
                Act::ReportLeaked => effects.report(ZombieReport::Leaked, target, self.count, now),
                Act::ReportEnded => effects.report(ZombieReport::Ended, target, self.count, now),
            }
        }
    }
}

impl fmt::Debug for Zombies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zombies").field("settings", &self.settings).field("health", &self.health()).finish()
    }
}

/// Whether the number of zombies has reached its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub enum ZombieLimit {
    /// There are fewer zombies than the limit.
    #[default]
    Kept,
    /// There are too many zombies: shut the application down. Returned once.
    Reached,
}

/// Decisions that are yet to be performed, without any lock.
#[derive(Default)]
#[must_use = "nothing is stopped or reported before it is performed"]
pub struct Effects {
    actions: Vec<Action>,
    limit: ZombieLimit,
    /// The removed termination, which must not be dropped under the owner's lock either.
    gone: Option<Target>,
}

enum Action {
    Cancel(Arc<dyn Interrupt>, Arc<str>),
    Interrupt(Arc<dyn Interrupt>),
    Report { report: ZombieReport, entity: Entity, code: Arc<dyn Interrupt>, count: usize, running: Duration },
}

#[derive(Clone, Copy)]
enum ZombieReport {
    Zombie,
    Leaked,
    Ended,
}

impl Effects {
    /// Performs the effects, in the order of the decisions.
    pub fn perform(self) -> ZombieLimit {
        for action in self.actions {
            match action {
                Action::Cancel(code, reason) => code.cancel(&reason),
                Action::Interrupt(code) => code.interrupt(),
                Action::Report { report, entity, code, count, running } => {
                    report.log(&entity, &code.place(), count, running)
                }
            }
        }
        self.limit
    }

    fn report(&mut self, report: ZombieReport, target: &Target, count: usize, now: Timestamp) {
        let (entity, code) = (target.entity.clone(), target.code.clone());
        let running = now.since(target.termination.since());
        self.actions.push(Action::Report { report, entity, code, count, running });
    }
}

impl ZombieReport {
    fn words(self) -> &'static str {
        match self {
            Self::Zombie => {
                "a zombie: it was asked to stop and runs on; its thread cannot be had back before it returns"
            }
            Self::Leaked => "a zombie has leaked: it is asked to stop no more, and counts until it returns",
            Self::Ended => "a zombie has ended after all and counts no more",
        }
    }

    fn log(self, entity: &Entity, place: &str, zombies: usize, running: Duration) {
        let Entity { kind, id, type_name, queue } = entity;
        let (type_name, queue, seconds) = (type_name.as_str(), queue.as_str(), running.as_secs_f64());
        if !tracing::dispatcher::has_been_set() {
            // Without a subscriber it must still be seen.
            return eprintln!("dacapo: {} ({entity}, {place}, {zombies} zombies)", self.words());
        }
        match self {
            Self::Zombie => tracing::error!(
                %kind, id, type_name, queue, zombies, place, seconds,
                "{}", self.words()
            ),
            Self::Leaked => tracing::error!(
                %kind, id, type_name, queue, zombies, place, seconds,
                "{}", self.words()
            ),
            Self::Ended => tracing::warn!(
                %kind, id, type_name, queue, zombies, place, seconds,
                "{}", self.words()
            ),
        }
    }
}

/// The health of a queue. Prints as a line, and one more for each piece of code that was asked to stop and has not
/// ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The number of zombies, with those that leaked.
    pub zombies: usize,
    /// The number of zombies that the worker no longer asks to stop.
    pub leaked: usize,
    /// The number of those that were asked to stop and still have time to.
    pub terminating: usize,
    /// All code that was asked to stop and has not ended.
    pub entities: Vec<StoppingCode>,
    /// Why a Temporal cluster hands out no tasks of the queue to this program any more. None while it does, and on other backends.
    pub ended: Option<String>,
}

/// Code that was asked to stop and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppingCode {
    /// The code.
    pub entity: Entity,
    /// The state of its termination.
    pub state: TerminationState,
    /// When it was asked to stop.
    pub since: Timestamp,
    /// The number of interrupts.
    pub interrupts: u32,
    /// Where it is, as far as is known.
    pub place: String,
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { zombies, leaked, terminating, entities, ended } = self;
        write!(f, "{zombies} zombies ({leaked} leaked), {terminating} terminating")?;
        if let Some(why) = ended {
            write!(f, "\ntakes no tasks any more: {why}")?;
        }
        for StoppingCode { entity, state, since, interrupts, place } in entities {
            write!(f, "\n{state:?} since {since}: {entity}, interrupted {interrupts} times, {place}")?;
        }
        Ok(())
    }
}

/// Whether a shutdown waits for terminations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShutdownWait {
    /// No: all have ended.
    Over,
    /// Yes, until this moment at most.
    Until(Timestamp),
    /// No longer. This is the code that is left.
    TooLong(Health),
}
