//! Any error as a failure, for `?` where no conversion exists.

use dacapo_core::Failure;

/// Turns the error of a result into a [`Failure`].
///
/// `?` converts strings, boxed errors and the common errors of the standard library by itself. For any other type there
/// are two ways: `impl From<YourError> for Failure`, which can also name the failure's type and say whether trying again
/// is pointless; or this call. An activity may also return the other error type itself.
///
/// ```
/// use dacapo::prelude::*;
///
/// #[activity]
/// async fn lookup(host: String) -> Result<String, Failure> {
///     let address: std::net::IpAddr = host.parse().or_fail()?;
///     Ok(address.to_string())
/// }
/// ```
pub trait OrFail<T> {
    /// Returns the value, or a failure that says what the error says, with its sources as causes.
    fn or_fail(self) -> Result<T, Failure>;
}

impl<T, E: Into<Box<dyn std::error::Error + Send + Sync>>> OrFail<T> for Result<T, E> {
    fn or_fail(self) -> Result<T, Failure> {
        self.map_err(|error| Failure::from(error.into()))
    }
}
