//! `cargo dacapo check`, with a cargo that only says how it was called.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

#[test]
fn check_runs_the_gates_of_a_program_on_the_backend_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let cargo = folder.path().join("cargo");
    std::fs::write(
        &cargo,
        "#!/bin/sh\necho \"$@\"\necho \"$DACAPO_CHECK_URL\"\necho \"$DACAPO_CHECK_REPORTS\"\nexit 3\n",
    )
    .unwrap();
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
    let check = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-dacapo"));
        command
            .current_dir(folder.path())
            .env("CARGO", &cargo)
            .env_remove("DACAPO_URL")
            .args(["dacapo", "check"])
            .args(words);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said, _) = check(&["--url", "sqlite:orders.db", "--reports", "out", "--", "-p", "orders"]);
    let here = std::fs::canonicalize(folder.path()).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(code, Some(3), "the exit code is that of the tests");
    assert_eq!(lines[0], "test -p orders dacapo_deploy_gate -- --ignored --nocapture");
    assert_eq!(lines[1], format!("sqlite:{}", here.join("orders.db").display()));
    assert_eq!(lines[2], here.join("out").display().to_string());
    let (_, said, _) = check(&["--url", "postgres://host/orders"]);
    assert_eq!(said.lines().nth(1), Some("postgres://host/orders"));
    let (code, _, said) = check(&[]);
    assert!(code == Some(2) && said.contains("--url"), "{said}");
}
