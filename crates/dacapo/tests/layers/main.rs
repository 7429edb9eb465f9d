//! What an app puts around its code: interceptors and a payload converter.

mod converter;
mod interceptors;
mod redaction;
