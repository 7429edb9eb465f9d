//! A server in memory.

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::tools::Tools;

/// How long it may take until the server answers.
const START: Duration = Duration::from_secs(60);
/// Settings with which tests may create a namespace each. By default a server lets few be created at a time.
pub(super) const MANY_NAMESPACES: &[&str] = &[
    "frontend.rps.namespaceReplicationInducingAPIs=10000",
    "frontend.namespaceRPS.namespaceReplicationInducingAPIs=10000",
];

/// A server that ends with this value.
pub(crate) struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts a server with these values of its dynamic configuration, and waits until it answers.
    pub(crate) fn start(tools: &Tools, settings: &[&str]) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("the loopback has no free port")?;
        let port = listener.local_addr()?.port();
        drop(listener);
        let process = Command::new(&tools.temporal)
            .args(["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "never"])
            .args(["--port", &port.to_string()])
            .args(settings.iter().flat_map(|value| ["--dynamic-config-value", *value]))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", tools.temporal.display()))?;
        let mut server = Self { process, port };
        server.wait(tools)?;
        Ok(server)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the id of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    fn wait(&mut self, tools: &Tools) -> Result<()> {
        let deadline = Instant::now() + START;
        loop {
            let address = format!("127.0.0.1:{}", self.port);
            let health = Command::new(&tools.temporal)
                .args(["operator", "cluster", "health", "--address", &address])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()?;
            if health.success() {
                return Ok(());
            }
            let ended = self.process.try_wait()?;
            ensure!(ended.is_none(), "the Temporal server ended at once");
            ensure!(Instant::now() < deadline, "the Temporal server does not answer within {START:?}");
            sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
