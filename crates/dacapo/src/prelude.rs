//! All that a program of workflows and activities needs by name: `use dacapo::prelude::*;`. [`Query`](crate::Query) is not
//! part of it, because web frameworks have a type of that name: `use dacapo::Query;`.

pub use crate::Either::{First, Second};
pub use crate::{
    ActivityCtx, App, Attr, CancelType, Cancelled, Ctx, Dacapo, Description, Either, Failure, FailureKind, Filter,
    Handle, Handled, IdConflict, IdReuse, Key, OneOf3, OneOf4, OneOf5, OneOf6, OneOf7, OneOf8, OrFail, ParentClose,
    PhaseEnd, Priority, Promise, Register, Retry, Signal, StateCell, Status, Target, Timestamp, Update, activities,
    activity, days, hours, millis, mins, secs, workflow,
};
