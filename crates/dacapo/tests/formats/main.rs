//! The formats that leave a process, each with its number and its golden file: `docs/compatibility.md` lists them all.

mod archive;
mod names;
mod schema;

const MANIFEST: &str = env!("CARGO_MANIFEST_DIR");
