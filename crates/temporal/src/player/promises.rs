//! Promises: opened by the workflow, resolved by an update of a reserved name. The update's validator is here, so that a second
//! answer is refused and leaves no trace.

use std::collections::{BTreeMap, BTreeSet};

use dacapo_core::{CreatePromise, Failure, Name, Outcome, Payload, Seq, Update};
use serde::{Deserialize, Serialize};

/// The types of refusals, by which a client tells them apart.
pub(crate) const NOT_FOUND: &str = "PromiseNotFound";
pub(crate) const RESOLVED: &str = "PromiseResolved";

/// The argument of the update that resolves a promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Resolve {
    /// The promise's name or id.
    pub(crate) promise: Name,
    pub(crate) result: Result<Payload, Failure>,
}

impl Resolve {
    /// Reads the only argument of the update.
    pub(crate) fn of(update: &Update) -> Result<Self, Failure> {
        let text = update.input.first().and_then(Payload::as_text).unwrap_or_default();
        serde_json::from_str(text).map_err(|error| {
            Failure::application(format!("the resolution of a promise cannot be read: {error}")).non_retryable()
        })
    }
}

/// The promises of a run.
#[derive(Default)]
pub(crate) struct Promises {
    /// By name and by id.
    open: BTreeMap<Name, Seq>,
    names: BTreeMap<Seq, [Name; 2]>,
    resolved: BTreeSet<Name>,
}

impl Promises {
    pub(crate) fn open(&mut self, promise: &CreatePromise) {
        let names = [promise.name.clone(), Name::from(promise.id.to_string())];
        for name in &names {
            self.resolved.remove(name);
            self.open.insert(name.clone(), promise.seq);
        }
        self.names.insert(promise.seq, names);
    }

    /// Forgets a promise that the workflow has dropped.
    pub(crate) fn close(&mut self, seq: Seq) {
        for name in self.names.remove(&seq).into_iter().flatten() {
            if self.open.get(&name) == Some(&seq) {
                self.open.remove(&name);
            }
        }
    }

    /// Forgets all promises: the run is closed.
    pub(crate) fn close_all(&mut self) {
        self.open.clear();
        self.names.clear();
    }

    /// Whether a resolution is for a promise that is not open, and was not resolved either: a turn may open it.
    pub(crate) fn may_open(&self, update: &Update) -> bool {
        let Ok(resolve) = Resolve::of(update) else { return false };
        !self.open.contains_key(&resolve.promise) && !self.resolved.contains(&resolve.promise)
    }

    /// Returns the operation to resolve.
    ///
    /// # Errors
    /// There is no such open promise.
    pub(crate) fn resolve(&mut self, resolve: Resolve) -> Result<(Seq, Outcome), Failure> {
        let Some(seq) = self.open.get(&resolve.promise).copied() else { return Err(self.refusal(&resolve.promise)) };
        for name in self.names.remove(&seq).into_iter().flatten() {
            if self.open.get(&name) == Some(&seq) {
                self.open.remove(&name);
            }
            self.resolved.insert(name);
        }
        Ok((seq, Outcome::from(resolve.result)))
    }

    fn refusal(&self, promise: &Name) -> Failure {
        let failure = match self.resolved.contains(promise) {
            true => Failure::application("it was resolved before").typed(RESOLVED),
            false => {
                let open: Vec<&str> = self.names.values().map(|[name, _]| name.as_str()).collect();
                Failure::application(if open.is_empty() { "none".to_owned() } else { open.join(", ") }).typed(NOT_FOUND)
            }
        };
        failure.non_retryable()
    }
}

#[cfg(test)]
mod tests {
    use dacapo_core::OperationId;

    use super::*;

    fn promise(seq: u64) -> CreatePromise {
        CreatePromise { seq: Seq(seq), id: OperationId::of(1, Seq(seq)), name: "decision".into() }
    }

    fn resolve(promise: &Name) -> Resolve {
        Resolve { promise: promise.clone(), result: Ok(Payload::json("true")) }
    }

    #[test]
    fn promise_is_resolved_once_by_its_name_or_id() {
        let mut promises = Promises::default();
        let (name, id) = (Name::from("decision"), Name::from(promise(3).id.to_string()));
        let type_of = |failure: Failure| failure.type_name.unwrap_or_default();
        assert_eq!(type_of(promises.resolve(resolve(&name)).unwrap_err()), NOT_FOUND);
        promises.open(&promise(3));
        assert_eq!(promises.resolve(resolve(&id)).unwrap().0, Seq(3));
        assert_eq!(type_of(promises.resolve(resolve(&name)).unwrap_err()), RESOLVED);
        promises.open(&promise(9));
        assert_eq!(promises.resolve(resolve(&name)).unwrap().0, Seq(9), "a later promise of the same name");
    }

    #[test]
    fn promise_that_was_dropped_is_resolved_no_more_and_leaves_others_of_its_name() {
        let mut promises = Promises::default();
        let name = Name::from("decision");
        promises.open(&promise(3));
        promises.close(Seq(3));
        assert_eq!(promises.resolve(resolve(&name)).unwrap_err().type_name.unwrap_or_default(), NOT_FOUND);
        promises.open(&promise(4));
        promises.open(&promise(5));
        promises.close(Seq(4));
        assert_eq!(promises.resolve(resolve(&name)).unwrap().0, Seq(5));
    }

    #[test]
    fn resolution_comes_back_from_its_update() {
        for result in [Ok(Payload::json("7")), Err(Failure::application("no"))] {
            let sent = Resolve { promise: "decision".into(), result };
            let input = vec![Payload::json(serde_json::to_string(&sent).unwrap())];
            assert_eq!(Resolve::of(&Update { input, ..Update::default() }), Ok(sent));
        }
        assert!(Resolve::of(&Update::default()).is_err());
    }
}
