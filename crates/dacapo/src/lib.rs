//! Durable execution for Rust: ordinary async functions that survive crashes, deploys and months of waiting.
//!
//! A workflow decides and never touches the world; activities touch it, and each is tried until it succeeds or its retry
//! policy ends. When the process dies, the workflow is played again from the beginning against what was recorded, and goes
//! on where it stopped.
//!
//! ```
//! use dacapo::prelude::*;
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Clone, Serialize, Deserialize)] pub struct Order { id: u64 }
//! # #[derive(Serialize, Deserialize)] pub struct Receipt { id: String }
//! # #[derive(Serialize, Deserialize)] pub struct Cancel;
//!
//! const CANCEL: Signal<Cancel> = Signal::new("cancel");
//!
//! /// Activities touch the world. One is tried until it succeeds or its retry policy ends.
//! #[activity]
//! async fn charge(order: Order) -> Result<Receipt, Failure> {
//!     Ok(Receipt { id: format!("r-{}", order.id) }) // Call the bank.
//! }
//! # #[activity] async fn refund(receipt: String) -> Result<(), Failure> { Ok(()) }
//! # #[activity] async fn ship(order: Order) -> Result<(), Failure> { Ok(()) }
//!
//! /// Workflows only decide.
//! #[workflow]
//! async fn checkout(ctx: Ctx, order: Order) -> Result<Receipt, Failure> {
//!     let receipt =
//!         ctx.call(charge, order.clone()).retry(Retry::exponential().attempts(5)).start_to_close(secs(10)).await?;
//!     match ctx.race(ctx.next_signal(CANCEL), ctx.sleep(days(14))).await? {
//!         First(_) => ctx.call(refund, receipt.id.clone()).await?,
//!         Second(()) => ctx.call(ship, order).await?,
//!     };
//!     Ok(receipt)
//! }
//! ```
//!
//! A wrong input type does not compile. What cannot be decoded at run time is treated by whose it is: see [`json`].

pub mod backend;
#[doc(hidden)]
pub mod deploy;
pub mod json;
pub mod prelude;

mod activities;
mod activity;
mod activity_ctx;
mod arguments;
mod attribute;
mod client;
mod converter;
mod ctx;
mod durations;
mod interceptor;
mod layers;
mod names;
mod or_fail;
mod register;
mod returned;
mod state_handlers;
#[cfg(feature = "temporal")]
pub mod temporal;
mod type_names;
mod workflow;

pub use activities::{Activities, ActivityList};
pub use activity::{ActivityFn, ActivityType, Attempt};
pub use activity_ctx::ActivityCtx;
pub use attribute::{FromAttribute, IntoAttribute};
pub use client::{
    App, Connection, Dacapo, Error, Filter, Handle, Imported, IntoName, IntoQueue, Result, Runs, SignalCall, StartCall,
    UpdateCall, UpdateHandle,
};
pub use converter::{Converter, ConverterError, PayloadConverter, TypedValue, ValueReader};
pub use ctx::{
    Call, Child, ChildStart, Ctx, DurableKeys, Handled, LocalCall, NOfM, NexusCall, OpenPromise, Phase, SideEffect,
    SignalExternalCall, SignalWait, StartedChild,
};
pub use dacapo_client::{
    ActivityState, Capabilities, Client, Count, Cursor, Description, Error as ClientError, EventKind, Feature, GroupBy,
    HistoryEvent, HistoryPage, IdConflict, Node, OperationKind, OperationStart, Page, PendingActivity, Problem,
    RunHistory, RunRef, Status, Stuck, StuckCause, StuckRuns, UnknownError, Unplayable,
};
pub use dacapo_core as core;
pub use dacapo_core::Either::{First, Second};
pub use dacapo_core::{
    AttributeValue, BadAttribute, CancelHandle, CancelType, Cancelled, ContinueAsNew, Either, Failure, FailureKind,
    IdReuse, Info, Name, OneOf3, OneOf4, OneOf5, OneOf6, OneOf7, OneOf8, Order, ParentClose, Payload, PhaseEnd, Pins,
    Priority, Retry, Scope, StateCell, StateGuard, Target, TimeoutKind, Timestamp, UnfinishedHandlers,
};
pub use dacapo_engine::ShutdownReport;
pub use dacapo_macros::{activities, activity, workflow};
pub use dacapo_worker::{
    ActivityInfo, AppSettings, AppValues, CompletionToken, Effective, EffectiveRow, Entity, EntityKind, Health,
    QueueSettings, QueueValues, Registry, RegistryError, SettingError, SettingErrors, SettingUnit, StoppingCode,
    TerminationState, TokenError,
};
pub use deploy::{DeployProblem, DeployReport};
pub use durations::{days, hours, millis, mins, secs};
pub use interceptor::{
    ActivityCall, CodeFuture, InboundKind, InboundMessage, Interceptor, Next, OutboundCommand, OutboundKind,
    WorkflowCall,
};
pub use json::{decode, encode};
pub use layers::Layers;
pub use names::{Attr, Key, Promise, Query, Signal, Update};
pub use or_fail::OrFail;
pub use register::{Catalog, Register};
pub use workflow::{WorkflowDef, WorkflowFn, WorkflowFuture, WorkflowType};

/// Functions that generated code calls. Programs do not call them.
#[doc(hidden)]
pub mod __macros {
    pub use crate::arguments::Arguments;
    pub use crate::returned::{AnyType, ByError, ByInto, Returned, Thrown};
    pub use crate::state_handlers::{query, signal, signal_async, update, update_async};
}
