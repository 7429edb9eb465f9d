//! Messages: signals and updates, and the waits and handlers that take them.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::Location;
use std::sync::Arc;

use super::cancel_scope::HANDLERS;
use super::phase::Phase;
use super::slot::{SlotId, Value, What};
use super::state::State;
use super::unit::{HandlerEnd, HandlerMessage, OnEnd, UnitFuture, UnitKey};
use crate::activation::Query;
use crate::job::{Signal, Update};
use crate::{CommandKind, Failure, Name, Ordinal, Payload, Seg, UnitId};

pub(crate) type SignalFn = Arc<dyn Fn(Signal) -> UnitFuture + Send + Sync>;
pub(crate) type UpdateFn = Arc<dyn Fn(Update) -> UnitFuture + Send + Sync>;
pub(crate) type ValidatorFn = Arc<dyn Fn(&Update) -> Result<(), Failure> + Send + Sync>;
pub(crate) type QueryFn = Arc<dyn Fn(&Query) -> Result<Payload, Failure> + Send + Sync>;

/// The handler of the signals of one name.
pub(crate) struct SignalHandler {
    pub(crate) start: SignalFn,
    pub(crate) phase: Option<u64>,
    pub(crate) site: &'static Location<'static>,
}

/// The handler of the updates of one name.
pub(crate) struct UpdateHandler {
    pub(crate) validator: Option<ValidatorFn>,
    pub(crate) start: UpdateFn,
    pub(crate) phase: Option<u64>,
    pub(crate) site: &'static Location<'static>,
}

/// The signals of one name. They are kept in order, taken once, and never lost.
#[derive(Default)]
struct SignalQueue {
    queue: VecDeque<(Ordinal, Box<Signal>)>,
    waiters: VecDeque<SlotId>,
    handler: Option<Arc<SignalHandler>>,
}

#[derive(Default)]
pub(crate) struct Messages {
    signals: BTreeMap<Name, Box<SignalQueue>>,
    /// Names with both a handler and signals for it.
    due: BTreeSet<Name>,
    /// Updates that are neither accepted nor rejected yet, by name.
    updates: BTreeMap<Name, VecDeque<(Ordinal, Box<Update>)>>,
    update_handlers: BTreeMap<Name, Arc<UpdateHandler>>,
    /// Updates that were accepted and are not answered yet.
    accepted: BTreeSet<Name>,
    query_handlers: BTreeMap<Name, QueryFn>,
    next_handler: u32,
    /// When the messages came whose handlers are yet to have their first step.
    pub(super) unstarted: BTreeSet<Ordinal>,
    /// Units whose next result is a signal that has to wait, and when that signal came.
    pub(super) withheld: BTreeSet<(Ordinal, UnitKey)>,
    pub(crate) phase: Option<Phase>,
    /// Phases that were dropped while some of their handlers were not done.
    pub(crate) left_phases: Vec<Phase>,
    pub(crate) next_phase: u64,
}

impl Messages {
    /// Moves all handlers to `items`, to be dropped one by one.
    pub(crate) fn take_handlers(&mut self, items: &mut Vec<Box<dyn Any + Send>>) {
        let signals = self.signals.values_mut().filter_map(|queue| queue.handler.take());
        items.extend(signals.map(|handler| Box::new(handler) as _));
        let updates = std::mem::take(&mut self.update_handlers).into_values();
        items.extend(updates.map(|handler| Box::new(handler) as _));
        let queries = std::mem::take(&mut self.query_handlers).into_values();
        items.extend(queries.map(|handler| Box::new(handler) as _));
    }

    /// Returns the open phase and those that were dropped before their handlers were done.
    pub(super) fn phases(&self) -> impl Iterator<Item = &Phase> {
        self.phase.iter().chain(&self.left_phases)
    }

    /// Returns whether no message waits for a handler to start.
    pub(super) fn has_none_waiting(&self) -> bool {
        self.due.is_empty() && self.updates.is_empty() && self.unstarted.is_empty() && self.phases().next().is_none()
    }

    /// Returns when the earliest message came that has a handler and was not brought to it, among the phases that
    /// `takes` accepts.
    pub(super) fn earliest_queued(&self, takes: impl Fn(Option<u64>) -> bool) -> Option<Ordinal> {
        let signals = self.due.iter().filter_map(|name| {
            let queue = self.signals.get(name)?;
            takes(queue.handler.as_ref()?.phase).then(|| queue.queue.front())?
        });
        let updates = self
            .updates
            .iter()
            .filter_map(|(name, queue)| takes(self.update_handlers.get(name)?.phase).then(|| queue.front())?);
        signals.map(|(came, _)| *came).chain(updates.map(|(came, _)| *came)).min()
    }
}

/// The next message that a handler takes.
pub(crate) enum Dispatch {
    Signal(Arc<SignalHandler>, Ordinal, Box<Signal>),
    Update(Arc<UpdateHandler>, Ordinal, Box<Update>),
}

impl State {
    /// Returns the messages. They are created with the first message, wait or handler: most runs have none.
    pub(crate) fn messages(&mut self) -> &mut Messages {
        self.messages.get_or_insert_default()
    }

    fn queue(&mut self, name: &Name) -> &mut SignalQueue {
        self.messages().signals.entry(name.clone()).or_default()
    }

    pub(crate) fn receive_signal(&mut self, came: Ordinal, signal: Box<Signal>) {
        let name = signal.name.clone();
        self.queue(&name).queue.push_back((came, signal));
        self.settle(&name);
    }

    /// Puts a signal back into its place in the queue, after a wait or a handler that it was given to did not take it.
    pub(crate) fn give_back(&mut self, came: Ordinal, signal: Box<Signal>) {
        let name = signal.name.clone();
        let queue = &mut self.queue(&name).queue;
        let place = queue.iter().position(|(other, _)| *other > came).unwrap_or(queue.len());
        queue.insert(place, (came, signal));
        self.settle(&name);
    }

    /// Brings the signals of one name to its handler, or to the waits for it.
    fn settle(&mut self, name: &Name) {
        let queue = self.queue(name);
        if queue.handler.is_some() {
            if !queue.queue.is_empty() {
                self.messages().due.insert(name.clone());
            }
            return;
        }
        loop {
            self.clear_line(name);
            let Some(queue) = self.messages.as_mut().and_then(|messages| messages.signals.get_mut(name)) else {
                return;
            };
            if queue.queue.is_empty() {
                return;
            }
            let Some(waiter) = queue.waiters.pop_front() else { return };
            let (came, signal) = queue.queue.pop_front().expect("the queue is not empty");
            self.deliver(waiter, came, Value::Signal(signal));
        }
    }

    /// Removes waits that are over from the front of the waits, and the queue if it holds nothing.
    fn clear_line(&mut self, name: &Name) {
        let Self { messages: Some(messages), slots, .. } = self else { return };
        let Some(queue) = messages.signals.get_mut(name) else { return };
        while queue.waiters.front().is_some_and(|waiter| !slots.contains_key(waiter)) {
            queue.waiters.pop_front();
        }
        if queue.waiters.is_empty() && queue.queue.is_empty() && queue.handler.is_none() {
            messages.signals.remove(name);
        }
    }

    /// Takes the next signal of this name if one is there, no wait takes it, and no earlier message goes first.
    pub(crate) fn take_signal(&mut self, name: &Name) -> Option<(Ordinal, Box<Signal>)> {
        let (came, _) = self.messages.as_ref()?.signals.get(name)?.queue.front()?;
        if self.is_withheld(*came) {
            return None;
        }
        let taken = self.messages.as_mut()?.signals.get_mut(name)?.queue.pop_front();
        self.clear_line(name);
        taken
    }

    /// Takes all signals that no wait and no handler took, in the order in which they came. A signal that a wait was
    /// given and did not take is among them, because the wait's future may outlive the units.
    pub(crate) fn untaken_signals(&mut self) -> Vec<Signal> {
        let Some(messages) = &mut self.messages else { return Vec::new() };
        let mut left: Vec<(Ordinal, Box<Signal>)> =
            messages.signals.values_mut().flat_map(|queue| std::mem::take(&mut queue.queue)).collect();
        for slot in self.slots.values_mut() {
            match slot.arrived.take() {
                Some((came, Value::Signal(signal))) => left.push((came, signal)),
                other => slot.arrived = other,
            }
        }
        left.sort_by_key(|(came, _)| *came);
        left.into_iter().map(|(_, signal)| *signal).collect()
    }

    pub(crate) fn has_signal_handler(&self, name: &Name) -> bool {
        let queue = self.messages.as_ref().and_then(|messages| messages.signals.get(name));
        queue.is_some_and(|queue| queue.handler.is_some())
    }

    pub(crate) fn await_signal(&mut self, name: &Name, site: &'static Location<'static>) -> SlotId {
        let id = self.open_wait(What::Signal(name.clone()), site);
        self.queue(name).waiters.push_back(id);
        self.settle(name);
        id
    }

    pub(crate) fn forget_waiter(&mut self, id: SlotId, what: &What) {
        match what {
            // The wait is skipped when it comes to the front.
            What::Signal(name) => self.clear_line(name),
            What::Condition => drop(self.forget_condition(id)),
            What::Operation(..) | What::Start(..) | What::Units => {}
        }
    }

    /// Registers a handler. The error says whether a handler or a wait already takes these signals.
    pub(crate) fn handle_signals(&mut self, name: &Name, handler: SignalHandler) -> Result<(), String> {
        let queue = self.queue(name);
        if queue.handler.is_some() {
            return Err(format!("signal {name:?} has a handler already; one name has one handler"));
        }
        let waiters: Vec<SlotId> = queue.waiters.iter().copied().collect();
        if waiters.iter().any(|waiter| self.slots.contains_key(waiter)) {
            return Err(format!("signal {name:?} is being waited for; it cannot have a handler as well"));
        }
        self.queue(name).handler = Some(Arc::new(handler));
        self.settle(name);
        Ok(())
    }

    pub(crate) fn handle_updates(&mut self, name: &Name, handler: UpdateHandler) -> Result<(), String> {
        if self.messages().update_handlers.contains_key(name) {
            return Err(format!("update {name:?} has a handler already; one name has one handler"));
        }
        self.messages().update_handlers.insert(name.clone(), Arc::new(handler));
        Ok(())
    }

    /// Registers a handler. Returns the one that it replaces, to be dropped outside the lock.
    pub(crate) fn handle_queries(&mut self, name: &Name, handler: QueryFn) -> Option<QueryFn> {
        self.messages().query_handlers.insert(name.clone(), handler)
    }

    pub(crate) fn query_handler(&self, name: &Name) -> Result<QueryFn, Failure> {
        let none = BTreeMap::new();
        let handlers = self.messages.as_ref().map_or(&none, |messages| &messages.query_handlers);
        handlers.get(name).cloned().ok_or_else(|| unknown("query", name, handlers))
    }

    /// Removes a phase's handlers; messages that they have not taken stay for others.
    pub(crate) fn remove_handlers(&mut self, phase: u64) {
        let updates = std::mem::take(&mut self.messages().update_handlers);
        let (gone, kept) = updates.into_iter().partition(|(_, handler)| handler.phase == Some(phase));
        self.messages().update_handlers = kept;
        self.closures_mut().spent.push(Box::<BTreeMap<Name, Arc<UpdateHandler>>>::new(gone));
        let mut freed: Vec<(Name, Arc<SignalHandler>)> = Vec::new();
        for (name, queue) in &mut self.messages().signals {
            let handler = queue.handler.take_if(|handler| handler.phase == Some(phase));
            freed.extend(handler.map(|handler| (name.clone(), handler)));
        }
        for (name, handler) in freed {
            self.closures_mut().spent.push(Box::new(handler));
            self.messages().due.remove(&name);
            self.settle(&name);
        }
    }

    pub(crate) fn receive_update(&mut self, came: Ordinal, update: Box<Update>) {
        self.messages().updates.entry(update.name.clone()).or_default().push_back((came, update));
    }

    pub(crate) fn update_is_open(&self, id: &Name) -> bool {
        self.messages.as_ref().is_some_and(|messages| messages.accepted.contains(id))
    }

    /// Returns whether there is nothing to do between two rounds: no message to bring to a handler, no condition to
    /// evaluate, no result to release.
    pub(crate) fn is_settled(&self) -> bool {
        let no_messages = self.messages.as_ref().is_none_or(|messages| {
            messages.due.is_empty() && messages.updates.is_empty() && messages.withheld.is_empty()
        });
        no_messages && !self.has_conditions() && self.released.is_empty()
    }

    /// Takes the earliest message that a handler can take now.
    pub(crate) fn next_dispatch(&mut self) -> Option<Dispatch> {
        // Messages that no handler has begun when the workflow continues as a new run belong to that run.
        if self.goes_on_as_new() {
            return None;
        }
        let messages = self.messages.as_mut()?;
        let handled = messages.updates.iter().filter(|(name, _)| messages.update_handlers.contains_key(*name));
        let update = handled.filter_map(|(name, queue)| Some((queue.front()?.0, name.clone()))).min();
        let came =
            |name: &Name| messages.signals.get(name).and_then(|queue| queue.queue.front()).map(|messages| messages.0);
        let signal = messages.due.iter().filter_map(|name| Some((came(name)?, name.clone()))).min();
        match (signal, update) {
            (Some((came, name)), other) if other.as_ref().is_none_or(|other| came < other.0) => {
                let queue = self.queue(&name);
                let handler = queue.handler.clone()?;
                let (came, signal) = queue.queue.pop_front()?;
                if queue.queue.is_empty() {
                    self.messages().due.remove(&name);
                }
                Some(Dispatch::Signal(handler, came, signal))
            }
            (_, Some((_, name))) => {
                let queue = messages.updates.get_mut(&name)?;
                let (came, update) = queue.pop_front()?;
                if queue.is_empty() {
                    messages.updates.remove(&name);
                }
                let handler = messages.update_handlers.get(&update.name)?.clone();
                Some(Dispatch::Update(handler, came, update))
            }
            (_, None) => None,
        }
    }

    /// Starts a handler: only now does it take its number.
    pub(crate) fn start_handler(
        &mut self,
        phase: Option<u64>,
        update: Option<Name>,
        site: &'static Location<'static>,
        (came, message): (Ordinal, HandlerMessage),
        future: UnitFuture,
    ) -> UnitId {
        let id = UnitId::root().child(Seg::H(self.messages().next_handler));
        self.messages().next_handler += 1;
        let waits = self.enter_phase(phase);
        let key = self.spawn(
            id.clone(),
            OnEnd::Handler(Box::new(HandlerEnd { update, phase, site, came, message: Some(message) })),
            HANDLERS,
            future,
            waits,
        );
        if waits {
            self.wait_for_phase(key);
        } else {
            self.set_current(phase, key);
            self.handler_is_due(key);
        }
        id
    }

    pub(crate) fn accept(&mut self, handler: &UpdateHandler, came: Ordinal, update: Box<Update>, future: UnitFuture) {
        let id = update.id.clone();
        self.messages().accepted.insert(id.clone());
        let message = (came, HandlerMessage::Update(update));
        let unit = self.start_handler(handler.phase, Some(id.clone()), handler.site, message, future);
        self.emit_for(unit, CommandKind::AcceptUpdate { update: id }, handler.site);
    }

    /// Takes back the handlers that this turn started and that have had no step, with their messages, when the workflow
    /// continues as a new run. The new run gets the messages: here they could only change a state that no code reads
    /// any more.
    pub(crate) fn recall_handlers(&mut self) -> Vec<UnitKey> {
        let turn = self.turn;
        let mut recalled = Vec::new();
        let mut messages = Vec::new();
        let keys: Vec<UnitKey> = self.units.keys().copied().collect();
        for key in keys {
            let Some(unit) = self.units.get_mut(&key).filter(|unit| unit.since == turn) else { continue };
            if let OnEnd::Handler(end) = &mut unit.on_end
                && let Some(message) = end.message.take()
            {
                recalled.push(key);
                messages.push((end.came, message));
            }
        }
        for (came, message) in messages {
            self.messages().unstarted.remove(&came);
            match message {
                HandlerMessage::Signal(signal) => self.give_back(came, signal),
                HandlerMessage::Update(update) => {
                    self.messages().accepted.remove(&update.id);
                    self.receive_update(came, update);
                }
            }
        }
        recalled
    }

    /// Takes the updates that no handler had begun when the workflow continued as a new run, in order.
    pub(crate) fn untaken_updates(&mut self) -> Vec<Update> {
        let Some(messages) = &mut self.messages else { return Vec::new() };
        let mut left: Vec<_> = std::mem::take(&mut messages.updates).into_values().flatten().collect();
        left.sort_by_key(|(came, _)| *came);
        // The next run decides itself whether it accepts them.
        left.into_iter().map(|(_, update)| Update { accepted: false, ..*update }).collect()
    }

    /// Rejects the updates that are left. No unit is runnable any more, so none will register a handler for them.
    pub(crate) fn reject_unhandled(&mut self) {
        if self.goes_on_as_new() {
            return;
        }
        let Some(messages) = &mut self.messages else { return };
        let mut left: Vec<_> = std::mem::take(&mut messages.updates).into_values().flatten().collect();
        left.sort_by_key(|(came, _)| *came);
        for (_, update) in left.into_iter().filter(|(_, update)| !update.accepted) {
            let failure = unknown("update", &update.name, &self.messages().update_handlers);
            self.reject(update.id, failure);
        }
    }

    pub(crate) fn answered(&mut self, update: &Name) {
        self.messages().accepted.remove(update);
    }
}

fn unknown<T>(what: &str, name: &Name, handlers: &BTreeMap<Name, T>) -> Failure {
    let known: Vec<&str> = handlers.keys().map(Name::as_str).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Failure::application(format!(
        "no handler for {what} {name:?}: correct the name, or register a handler; known now: {known}"
    ))
    .typed("NoHandler")
    .non_retryable()
}
