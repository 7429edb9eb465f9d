//! What a worker is made of, without a backend: settings, terminations and attempts.

mod settings;
mod settings_page;
