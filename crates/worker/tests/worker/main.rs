//! What a worker is made of, without a backend: settings, terminations and attempts.

mod scope;
mod settings;
mod settings_page;
