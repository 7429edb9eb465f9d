//! What a backend implements, and the plain data of its calls: for a backend of your own, which
//! [`Connection::over`](crate::Connection::over) connects to, and for programs that call one without types.

pub use dacapo_client::*;
