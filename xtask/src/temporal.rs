//! `temporal`: the tests that need a Temporal server, with a real one.

mod server;
mod tools;

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use self::server::MANY_NAMESPACES;
pub(crate) use self::server::Server;
pub(crate) use self::tools::Tools;
use crate::cargo;

/// The tests, by package.
const TESTS: &[&[&str]] = &[
    &["-p", "dacapo-examples", "--features", "temporal", "--test", "backends"],
    &["-p", "dacapo-examples", "--features", "temporal", "--test", "cluster"],
    &["-p", "dacapo", "--features", "temporal", "--test", "interop"],
];

/// Runs them all, or those whose name contains this text.
pub(crate) fn run(root: &Path, only: Option<&str>) -> Result<()> {
    cargo::default_build_lacks(root, "temporal")?;
    let tools = Tools::get(root)?;
    let server = Server::start(&tools, MANY_NAMESPACES)?;
    println!("temporal: a server runs on port {}", server.port());
    // Both are run, so that one look shows all that is wrong.
    let failed: Vec<String> = TESTS
        .iter()
        .filter_map(|args| test(root, &tools, &server, args, only).err())
        .map(|error| error.to_string())
        .collect();
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// Runs all tests, for the gate.
pub(crate) fn all(root: &Path) -> Result<()> {
    run(root, None)
}

fn test(root: &Path, tools: &Tools, server: &Server, args: &[&str], only: Option<&str>) -> Result<()> {
    let mut command = cargo::command(root);
    command.arg("test").args(args);
    // The suite has run on the other backends by now.
    if args.contains(&"backends") && only.is_none() {
        command.args(["--", "temporal::"]);
    }
    if let Some(only) = only {
        command.args(["--", only]);
    }
    command
        .env("TEST_TEMPORAL_PORT", server.port().to_string())
        .env("TEST_TEMPORAL_TOOL", &tools.temporal)
        .env("TEST_TEMPORAL_PYTHON", &tools.python);
    let shown = format!("cargo test {}", args.join(" "));
    println!("{shown}");
    if !command.status().with_context(|| format!("cannot start `{shown}`"))?.success() {
        bail!("`{shown}` failed; `cargo xtask temporal NAME` runs the tests of that name alone");
    }
    Ok(())
}
