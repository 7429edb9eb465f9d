//! All terminations of one queue: who was asked to stop, who runs on, and when that is too much.
//!
//! Every call only decides. What it decided comes back as [`Effects`], to be performed after the owner has let go of its
//! lock: code that is stopped may end at once, and its end comes back here. Nothing here has a clock or a thread, and no
//! thread is ever killed: what runs on is counted and reported, and too much of it ends the process in an orderly way.
//!
//! Code becomes a zombie when it blocks where nobody can wake it (a lock, a socket without a timeout, native code), when
//! it loops without calling its ctx or awaiting, when it ignores that it was cancelled, or when the machine is so loaded
//! that it does not get to run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{Name, Timestamp};

use crate::run_name::RunName;
use crate::{Act, ActivityInfo, Interrupt, Termination, TerminationState, ZombieSettings};

/// What is to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// What it is.
    pub kind: EntityKind,
    /// Workflow id, run id and, of an activity, its id, with slashes between.
    pub id: String,
    /// The type of the workflow or activity.
    pub type_name: Name,
    /// The queue it came through.
    pub queue: Name,
}

/// A turn or an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityKind {
    /// A turn of a workflow.
    Turn,
    /// An attempt of an activity.
    Activity,
}

impl Entity {
    /// A turn of a run.
    pub fn turn(run: &RunName) -> Self {
        let id = format!("{}/{}", run.workflow_id, run.run_id);
        Self { kind: EntityKind::Turn, id, type_name: run.workflow.clone(), queue: run.queue.clone() }
    }

    /// An attempt of an activity.
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

/// One termination among those of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TerminationId(u64);

/// All terminations of one queue.
pub struct Zombies {
    settings: ZombieSettings,
    last: u64,
    under_way: BTreeMap<TerminationId, Target>,
    /// When each of them has something to do next.
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
    /// No terminations, by these settings.
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

    /// Time has gone on.
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

    /// The code has ended. Saying so again changes nothing.
    pub fn finished(&mut self, id: TerminationId, now: Timestamp) -> Effects {
        let mut effects = Effects::default();
        let Some(target) = self.under_way.get_mut(&id) else { return effects };
        self.due.remove(&(target.termination.next().unwrap_or_default(), id));
        let acts = target.termination.finished();
        self.take(id, &acts, now, &mut effects);
        effects.gone = self.under_way.remove(&id);
        effects
    }

    /// When [`Self::tick`] has something to do.
    pub fn next(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// How many zombies there are, with those that leaked.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many were asked to stop and still have time to.
    pub fn terminating(&self) -> usize {
        self.in_state(TerminationState::Terminating)
    }

    fn in_state(&self, state: TerminationState) -> usize {
        self.under_way.values().filter(|target| target.termination.state() == state).count()
    }

    /// How the queue is.
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
        }
    }

    /// Whether a shutdown that has waited for terminations since then goes on waiting.
    pub fn wait(&self, since: Timestamp, now: Timestamp) -> Wait {
        let until = since.after(self.settings.shutdown_timeout);
        match (self.under_way.is_empty(), until > now) {
            (true, _) => Wait::Over,
            (false, true) => Wait::Until(until),
            (false, false) => Wait::TooLong(self.health()),
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

/// Whether the application can go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub enum ZombieLimit {
    /// It can.
    #[default]
    Kept,
    /// There are too many zombies: shut it down. Said once.
    Reached,
}

/// What was decided and is yet to be done, outside every lock.
#[derive(Default)]
#[must_use = "nothing is stopped or reported before it is performed"]
pub struct Effects {
    actions: Vec<Action>,
    limit: ZombieLimit,
    /// What was let go of is not dropped under the owner's lock either.
    gone: Option<Target>,
}

enum Action {
    Cancel(Arc<dyn Interrupt>, Arc<str>),
    Interrupt(Arc<dyn Interrupt>),
    Report { news: ZombieReport, entity: Entity, code: Arc<dyn Interrupt>, count: usize, running: Duration },
}

#[derive(Clone, Copy)]
enum ZombieReport {
    Zombie,
    Leaked,
    Ended,
}

impl Effects {
    /// Does it, in the order in which it was decided.
    pub fn perform(self) -> ZombieLimit {
        for action in self.actions {
            match action {
                Action::Cancel(code, reason) => code.cancel(&reason),
                Action::Interrupt(code) => code.interrupt(),
                Action::Report { news, entity, code, count, running } => {
                    news.say(&entity, &code.place(), count, running)
                }
            }
        }
        self.limit
    }

    fn report(&mut self, news: ZombieReport, target: &Target, count: usize, now: Timestamp) {
        let (entity, code) = (target.entity.clone(), target.code.clone());
        let running = now.since(target.termination.since());
        self.actions.push(Action::Report { news, entity, code, count, running });
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

    fn say(self, entity: &Entity, place: &str, zombies: usize, running: Duration) {
        let Entity { kind, id, type_name, queue } = entity;
        let (type_name, queue, seconds) = (type_name.as_str(), queue.as_str(), running.as_secs_f64());
        if !tracing::dispatcher::has_been_set() {
            // Where nobody listens it must still be seen.
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

/// How a queue is. Prints as a line, and one more for each that was asked to stop and has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// How many zombies there are, with those that leaked.
    pub zombies: usize,
    /// How many of them are asked to stop no more.
    pub leaked: usize,
    /// How many were asked to stop and still have time to.
    pub terminating: usize,
    /// All of them.
    pub entities: Vec<StoppingCode>,
}

/// Code that was asked to stop and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppingCode {
    /// What it is.
    pub entity: Entity,
    /// How far its termination is.
    pub state: TerminationState,
    /// Since when.
    pub since: Timestamp,
    /// How often it was interrupted.
    pub interrupts: u32,
    /// Where it is, as far as is known.
    pub place: String,
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { zombies, leaked, terminating, entities } = self;
        write!(f, "{zombies} zombies ({leaked} leaked), {terminating} terminating")?;
        for StoppingCode { entity, state, since, interrupts, place } in entities {
            write!(f, "\n{state:?} since {since}: {entity}, interrupted {interrupts} times, {place}")?;
        }
        Ok(())
    }
}

/// Whether a shutdown waits for terminations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// All have ended.
    Over,
    /// Until then, at most.
    Until(Timestamp),
    /// No longer. This is what is left.
    TooLong(Health),
}
