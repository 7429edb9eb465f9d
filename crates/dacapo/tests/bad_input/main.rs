//! Bad input of every public call: each row gives a call something it cannot take, and says which words the error holds.
//! After every row nothing has changed. `cargo xtask tidy` fails for a public call without a row.

mod client;
mod ctx;
mod setup;
