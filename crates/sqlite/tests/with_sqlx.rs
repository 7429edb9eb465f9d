//! Programs that use sqlx beside Dacapo. Only one version of `libsqlite3-sys` can be linked into a program, and sqlx names
//! one even where it is used for PostgreSQL alone, so the range of `rusqlite` versions that Dacapo accepts has to meet it.
//!
//! Needs a registry of crates, as every first build does.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A workspace with one package that depends on Dacapo and on this version of sqlx.
fn workspace(sqlx: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let dacapo = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("dacapo");
    // No `rust-version`: cargo would then look for versions of sqlx that are older than asked for.
    let manifest = format!(
        "[package]\nname = \"with-sqlx\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\ndacapo = {{ path = {dacapo:?} }}\nsqlx = {sqlx:?}\n\n[workspace]\n"
    );
    std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/lib.rs"), "").unwrap();
    folder
}

/// Runs cargo there and returns its standard output.
fn cargo(workspace: &TempDir, target: &str, arguments: &[&str]) -> String {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(target);
    let ran = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(workspace.path())
        .env("CARGO_TARGET_DIR", target)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "cargo {}: {errors}", arguments.join(" "));
    String::from_utf8(ran.stdout).unwrap()
}

/// Resolves such a workspace, compiles the store with the versions it came to, and compares the one of `rusqlite`.
fn check(sqlx: &str, rusqlite: &str) {
    let workspace = workspace(sqlx);
    let target = format!("with-sqlx-{sqlx}");
    cargo(&workspace, &target, &["generate-lockfile"]);
    let tree = cargo(&workspace, &target, &["tree", "--package", "dacapo-sqlite", "--depth", "1", "--prefix", "none"]);
    assert!(tree.lines().any(|line| line.starts_with(&format!("rusqlite v{rusqlite}."))), "{tree}");
    cargo(&workspace, &target, &["check", "--package", "dacapo-sqlite"]);
}

#[test]
fn workspace_with_sqlx_0_8_resolves_and_the_store_compiles() {
    check("0.8", "0.32");
}

#[test]
fn workspace_with_sqlx_0_9_resolves_and_the_store_compiles() {
    check("0.9", "0.39");
}
