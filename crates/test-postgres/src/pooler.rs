//! A connection pooler before a server: PgBouncer.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::folder::{Folder, PID_OF_POOLER};
use crate::port::free_port;
use crate::programs::{command, pgbouncer};
use crate::user::User;

/// How long it may take until it accepts connections.
const START: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// A pooler. When this is dropped it ends.
pub struct Pooler {
    port: u16,
    process: Child,
    /// The last to be dropped.
    folder: Folder,
}

impl Pooler {
    /// Starts a pooler before the database `postgres` of the server at this address, such as `127.0.0.1:5432`, and waits until it accepts
    /// connections. `settings` are lines of its configuration, such as `pool_mode = transaction`. Its files are in a new folder in `parent`.
    ///
    /// # Errors
    /// PgBouncer is not installed and cannot be, or it does not start. The text says what to do.
    pub fn start(parent: &Path, server: &str, settings: &[&str]) -> Result<Self> {
        let (program, user) = (pgbouncer()?, User::for_server()?);
        let folder = Folder::create(parent, user)?;
        let port = free_port()?;
        let file = folder.path().join("pgbouncer.ini");
        let text = configuration(server, port, &folder.path().join(PID_OF_POOLER), settings)?;
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        let log = folder.open_log()?;
        let mut command = command(&program, folder.path(), user);
        command.arg(&file).stdout(log.try_clone()?).stderr(log);
        let process = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let mut pooler = Self { port, process, folder };
        pooler.wait()?;
        Ok(pooler)
    }

    /// Returns its host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn wait(&mut self) -> Result<()> {
        let deadline = Instant::now() + START;
        let listens = format!("listening on {}", self.address());
        loop {
            let log = self.folder.last_lines_of_log();
            if let Some(ended) = self.process.try_wait()? {
                bail!("PgBouncer ended at its start with {ended}:\n{log}");
            }
            if log.contains(&listens) && log.contains("process up") {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "PgBouncer does not accept connections within {START:?}:\n{log}");
            sleep(LOOK);
        }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the text of its configuration. Every user is let in, and is the server's superuser.
fn configuration(server: &str, port: u16, pid: &Path, settings: &[&str]) -> Result<String> {
    let (host, of_server) = server.split_once(':').with_context(|| format!("{server:?} has no port"))?;
    Ok(format!(
        "[databases]\npostgres = host={host} port={of_server} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir =\nauth_type = any\npidfile = {}\n{}\n",
        pid.display(),
        settings.join("\n")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_has_the_server_and_the_settings() {
        let text = configuration("db:7000", 6_432, Path::new("/tmp/pid"), &["pool_mode = session"]).unwrap();
        assert!(text.contains("host=db port=7000 ") && text.contains("\nlisten_port = 6432\n"), "{text}");
        assert!(text.ends_with("\npidfile = /tmp/pid\npool_mode = session\n"), "{text}");
        let error = configuration("db", 6_432, Path::new("/tmp/pid"), &[]).unwrap_err().to_string();
        assert_eq!(error, "\"db\" has no port");
    }
}
