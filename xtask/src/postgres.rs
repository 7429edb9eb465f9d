//! `postgres`: the tests that need a PostgreSQL server, with a real one.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use dacapo_test_postgres::{SHARED_DATABASE, Server};

use crate::cargo;

/// The tests, by package. Each test has a schema of its own.
const TESTS: &[&[&str]] = &[
    &["-p", "dacapo-test-postgres", "--features", "server", "--test", "server"],
    &["-p", "dacapo-postgres", "--features", "conformance", "--tests"],
    &["-p", "dacapo-examples", "--features", "postgres", "--test", "deadly_nodes"],
    &["-p", "dacapo-examples", "--features", "postgres", "--test", "backends"],
];

/// Runs them all, or those whose name contains this text.
pub(crate) fn run(root: &Path, only: Option<&str>) -> Result<()> {
    cargo::default_build_lacks(root, "postgres")?;
    let server = start(root, &[])?;
    println!("postgres: a server runs on port {}", server.port());
    // All are run, so that one look shows all that is wrong.
    let failed: Vec<String> =
        TESTS.iter().filter_map(|args| test(root, &server, args, only).err()).map(|error| error.to_string()).collect();
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// Runs all tests, for the gate.
pub(crate) fn all(root: &Path) -> Result<()> {
    run(root, None)
}

/// Starts a server with these settings and its data in `target`.
pub(crate) fn start(root: &Path, settings: &[&str]) -> Result<Server> {
    Server::start(&root.join("target"), settings)
}

fn test(root: &Path, server: &Server, args: &[&str], only: Option<&str>) -> Result<()> {
    let mut command = cargo::command(root);
    command.arg("test").args(args);
    // The suite has run on the other backends by now.
    if args.contains(&"backends") && only.is_none() {
        command.args(["--", "postgres::"]);
    }
    if let Some(only) = only {
        command.args(["--", only]);
    }
    command.env(SHARED_DATABASE, server.url());
    let shown = format!("cargo test {}", args.join(" "));
    println!("{shown}");
    if !command.status().with_context(|| format!("cannot start `{shown}`"))?.success() {
        bail!("`{shown}` failed; `cargo xtask postgres NAME` runs the tests of that name alone");
    }
    Ok(())
}
