//! A server.

use std::path::Path;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::folder::Folder;
use crate::port::free_port;
use crate::process;
use crate::programs::{Programs, command};
use crate::user::User;

/// How long the server may take until it accepts connections. After a kill it has its log to play.
const START: Duration = Duration::from_secs(120);
/// How long it may take to end.
const END: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// Durable commits, and connections for many nodes and tests at once.
const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "fsync=on",
    "synchronous_commit=on",
    "max_connections=300",
    "logging_collector=off",
    "log_line_prefix=%m [%p] ",
];

/// A server. When this is dropped it ends and its data are removed.
///
/// ```no_run
/// # fn main() -> anyhow::Result<()> {
/// use dacapo_test_postgres::{Server, schema_url};
///
/// let mut server = Server::start("target".as_ref(), &[])?;
/// let url = schema_url(&server.url());
/// // Dacapo::open(&url) …
/// server.kill()?;
/// server.restart()?;
/// # Ok(()) }
/// ```
pub struct Server {
    programs: Programs,
    user: Option<User>,
    settings: Vec<String>,
    port: u16,
    /// None while the server is killed.
    process: Option<Child>,
    /// The last to be dropped.
    folder: Folder,
}

impl Server {
    /// Starts a new server with a data directory in this folder, and waits until it accepts connections. `settings` are more of its settings, such
    /// as `log_statement=all`. It has a superuser `postgres` without a password.
    ///
    /// # Errors
    /// No server is installed and none can be installed, or it does not start. The text says what to do.
    pub fn start(parent: &Path, settings: &[&str]) -> Result<Self> {
        let (programs, user) = (Programs::get()?, User::for_server()?);
        let folder = Folder::create(parent, user)?;
        let port = free_port()?;
        let settings = SETTINGS.iter().chain(settings).map(|setting| (*setting).to_owned()).collect();
        let mut server = Self { programs, user, settings, port, process: None, folder };
        server.create_data()?;
        server.restart()?;
        Ok(server)
    }

    /// Returns the URL of its database.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Returns the port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the ids of its processes, its main process first. None of them is left after a kill.
    pub fn processes(&self) -> Vec<u32> {
        self.process.as_ref().map_or(Vec::new(), |main| process::with_children(main.id()))
    }

    /// Kills all processes of the server at once, as a power cut of its machine would, and waits until they have ended.
    ///
    /// # Errors
    /// They do not end.
    pub fn kill(&mut self) -> Result<()> {
        let pids = self.processes();
        process::signal("-KILL", &pids);
        if let Some(mut main) = self.process.take() {
            main.wait()?;
        }
        // The next server needs the shared memory that they have in use.
        ensure!(process::wait_until_ended(&pids, END), "processes of PostgreSQL have not ended {END:?} after a kill");
        Ok(())
    }

    /// Starts the server again on the same port, with its data, and waits until it accepts connections. One that runs is killed first.
    ///
    /// # Errors
    /// It does not start; the text has the end of its log.
    pub fn restart(&mut self) -> Result<()> {
        self.kill()?;
        let log = self.folder.open_log()?;
        let mut command = self.command(&self.programs.postgres);
        command.arg("-D").arg(self.folder.data()).args(["-p", &self.port.to_string()]);
        command.arg("-k").arg(self.folder.path());
        command.args(self.settings.iter().flat_map(|setting| ["-c", setting]));
        command.stdout(log.try_clone()?).stderr(log);
        let process = command.spawn().with_context(|| format!("cannot start {}", self.programs.postgres.display()))?;
        self.process = Some(process);
        self.wait()
    }

    /// Makes an empty data directory. It is not flushed: when the machine fails, so do the tests.
    fn create_data(&self) -> Result<()> {
        let mut command = self.command(&self.programs.initdb);
        command.arg("-D").arg(self.folder.data()).args(["--username=postgres", "--auth=trust", "--no-sync"]);
        let output = command.args(["--encoding=UTF8", "--locale=C"]).output();
        let output = output.with_context(|| format!("cannot start {}", self.programs.initdb.display()))?;
        ensure!(
            output.status.success(),
            "`initdb` failed: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    fn command(&self, program: &Path) -> Command {
        command(program, self.folder.path(), self.user)
    }

    fn wait(&mut self) -> Result<()> {
        let deadline = Instant::now() + START;
        let process = self.process.as_mut().context("the server was not started")?;
        while !self.folder.state().is_some_and(|state| state.pid == process.id() && state.is_ready) {
            let log = || self.folder.last_lines_of_log();
            if let Some(ended) = process.try_wait()? {
                self.process = None;
                bail!("PostgreSQL ended at its start with {ended}:\n{}", log());
            }
            ensure!(
                Instant::now() < deadline,
                "PostgreSQL does not accept connections within {START:?} on port {}:\n{}",
                self.port,
                log()
            );
            sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Server {
    /// Ends the server without flushing what is removed anyway. It gives its shared memory back first.
    fn drop(&mut self) {
        if let Some(main) = &self.process {
            let pids = process::with_children(main.id());
            process::signal("-QUIT", &[main.id()]);
            process::wait_until_ended(&pids, END);
        }
        let _ = self.kill();
    }
}
