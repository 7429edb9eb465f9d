//! Locks with a rank, and threads that must not block.
//!
//! Every lock class has a [`Rank`]. A thread may take a lock only if its rank is higher than that of every lock it holds;
//! in builds with debug assertions another order panics and names both locks, so that a possible deadlock is found by the
//! first test that takes the wrong order, and not by the first unlucky schedule. Release builds check nothing.
//!
//! A rank also says whether a thread may block under it, that is, read or write the store. [`forbid_blocking`] forbids the
//! same to a stretch of code, for instance a commit callback. Functions that block call [`assert_may_block`].
//!
//! A panic while a lock is held does not poison it: state is kept valid between statements, and user code never runs under
//! a lock.

mod blocking;
mod held;
mod mutex;
mod rank;
pub mod ranks;
mod violation;

pub use blocking::{Forbidden, allow_blocking, assert_may_block, forbid_blocking, is_blocking_allowed};
pub use mutex::{Condvar, Mutex, MutexGuard};
pub use rank::Rank;
pub use violation::abort_on_violation;
