//! What a worker is made of, without a backend: settings, terminations and attempts.

mod attempt_parts;
mod deadline;
mod log;
mod operate_page;
mod pool;
mod settings;
mod settings_page;
mod stubborn;
mod zombies;
