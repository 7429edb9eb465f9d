//! A real server: `cargo xtask postgres` runs these tests.

use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;

use dacapo_test_postgres::Server;

fn is_connectable(server: &Server) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).is_ok()
}

fn is_running(pid: u32) -> bool {
    // A process that has ended, and that its parent has not looked after yet, has no command line.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

#[test]
fn server_is_killed_restarted_and_removed() {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut server = Server::start(parent, &["log_connections=on"]).unwrap();
    let url = server.url();
    assert_eq!(url, format!("postgres://postgres@127.0.0.1:{}/postgres", server.port()));
    let first = server.processes();
    assert!(first.len() > 1 && is_connectable(&server), "{first:?}");
    server.kill().unwrap();
    assert!(server.processes().is_empty() && !is_connectable(&server));
    assert!(!first.iter().any(|pid| is_running(*pid)), "{first:?}");
    // Twice: one of them is killed by the restart itself.
    server.restart().unwrap();
    server.restart().unwrap();
    assert_eq!(server.url(), url);
    let last = server.processes();
    assert!(is_connectable(&server) && !last.contains(&first[0]), "{last:?}");
    let folder = std::fs::read_link(format!("/proc/{}/cwd", last[0])).unwrap();
    assert!(folder.join("PG_VERSION").exists());
    drop(server);
    assert!(!folder.exists() && !last.iter().any(|pid| is_running(*pid)), "{last:?}");
}

#[test]
fn server_that_cannot_start_says_why() {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let error = Server::start(parent, &["shared_bufers=1"]).map(drop).unwrap_err().to_string();
    assert!(error.contains("PostgreSQL ended at its start") && error.contains("shared_bufers"), "{error}");
}
