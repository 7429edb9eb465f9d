//! Workflows as the core knows them, and what a run is started with.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use super::shared::Reporter;
use super::state::UnfinishedHandlers;
use super::unit::UnitFuture;
use crate::policy::{Policy, PolicySpec};
use crate::{Ctx, Failure, Name, Payload, UnitId};

/// The newest rules of play that this build knows. A run keeps the version it began with; all versions stay playable.
pub const SEMANTICS: u32 = 1;

/// The function of a workflow, called once.
pub type WorkflowCode = Box<dyn FnOnce(Ctx, Vec<Payload>) -> UnitFuture + Send>;

type StartFn = Arc<dyn Fn(Ctx, Vec<Payload>) -> UnitFuture + Send + Sync>;

/// A registered workflow: a name, and the async function that decides.
#[derive(Clone)]
pub struct Workflow(Arc<Definition>);

#[derive(Clone)]
struct Definition {
    name: Name,
    start: StartFn,
    unfinished_handlers: UnfinishedHandlers,
    site: &'static Location<'static>,
}

impl Workflow {
    /// Creates a workflow of this name, played by this function.
    #[track_caller]
    pub fn new<F, P>(name: impl Into<Name>, start: F) -> Self
    where
        F: Fn(Ctx, Vec<Payload>) -> P + Send + Sync + 'static,
        P: Future<Output = Result<Payload, Failure>> + Send + 'static,
    {
        Self(Arc::new(Definition {
            name: name.into(),
            start: Arc::new(move |ctx, input| Box::pin(start(ctx, input)) as Pin<Box<dyn Future<Output = _> + Send>>),
            unfinished_handlers: UnfinishedHandlers::default(),
            site: Location::caller(),
        }))
    }

    /// Sets what happens to handlers that still wait when the function returns.
    #[must_use]
    pub fn unfinished_handlers(mut self, policy: UnfinishedHandlers) -> Self {
        Arc::make_mut(&mut self.0).unfinished_handlers = policy;
        self
    }

    /// Puts code around the function: `around` gets the arguments and the function, and returns the future that is played.
    #[must_use]
    pub fn wrapped<F>(mut self, around: F) -> Self
    where
        F: Fn(Ctx, Vec<Payload>, WorkflowCode) -> UnitFuture + Send + Sync + 'static,
    {
        let definition = Arc::make_mut(&mut self.0);
        let start = definition.start.clone();
        definition.start = Arc::new(move |ctx, input| {
            let start = start.clone();
            around(ctx, input, Box::new(move |ctx, input| start(ctx, input)))
        });
        self
    }

    /// Returns the workflow's name.
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    pub(crate) fn handler_policy(&self) -> UnfinishedHandlers {
        self.0.unfinished_handlers
    }

    pub(crate) fn site(&self) -> &'static Location<'static> {
        self.0.site
    }

    /// Returns the root's future. The function itself is called in the root's first step, not before.
    pub(crate) fn root(&self, ctx: Ctx, input: Vec<Payload>) -> UnitFuture {
        let start = self.0.start.clone();
        Box::pin(async move { start(ctx, input).await })
    }
}

impl fmt::Debug for Workflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workflow {}", self.0.name)
    }
}

/// The order of the units in a round. Pinned per run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The root, then branches and launched units by path, then handlers by number.
    #[n(0)]
    RootFirst,
    /// Handlers by number, then the root, then branches and launched units by path: the default. A wait for a signal is
    /// not ready while an earlier message waits for its handler to start.
    #[default]
    #[n(1)]
    HandlersFirst,
}

impl Order {
    pub(crate) fn rank(self, id: &UnitId) -> u8 {
        match self {
            Self::RootFirst => u8::from(id.is_handler()),
            Self::HandlersFirst => u8::from(!id.is_handler()),
        }
    }
}

/// The settings that a run keeps for its whole life, whatever later builds prefer.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    /// The version of the rules of play.
    #[n(0)]
    pub semantics: u32,
    /// The order of units within a round.
    #[n(1)]
    #[serde(default)]
    pub order: Order,
    /// The policy that picks among equals.
    #[n(2)]
    #[serde(default)]
    pub policy: PolicySpec,
}

impl Default for Pins {
    fn default() -> Self {
        Self { semantics: SEMANTICS, order: Order::default(), policy: PolicySpec::default() }
    }
}

/// A factory of a policy of the user's own, called once for each run.
pub type OwnPolicy = Arc<dyn Fn() -> Box<dyn Policy> + Send + Sync>;

/// A callback that silences logging during the second play of an activation. It is called before that play, and the
/// value it returns is dropped when the play is over. The second play repeats the first, so its logs would be
/// duplicates.
pub type ReplaySilencer = Arc<dyn Fn() -> Box<dyn Any> + Send + Sync>;

/// The options with which a run is played in this process.
#[derive(Clone)]
pub struct RunOptions {
    /// The settings that the run keeps for its whole life.
    pub pins: Pins,
    /// Whether a second instance gets the same activations and must decide the same. On in debug and test builds.
    pub double_play: bool,
    /// Whether reports leave payloads out.
    pub redact: bool,
    /// The callback for violations, called the moment they happen.
    pub reporter: Option<Reporter>,
    /// The user's own policy, for runs that are pinned to one.
    pub own_policy: Option<OwnPolicy>,
    /// The replay silencer, called before every second play.
    pub silencer: Option<ReplaySilencer>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            pins: Pins::default(),
            double_play: cfg!(debug_assertions),
            redact: false,
            reporter: None,
            own_policy: None,
            silencer: None,
        }
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions").field("pins", &self.pins).field("double_play", &self.double_play).finish()
    }
}
