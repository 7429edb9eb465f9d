//! Programs in Python, which run beside a test and end with it.

use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use dacapo::json::Value;
use tokio::sync::mpsc;

/// The variable that names an interpreter which has Temporal's SDK (`temporalio`).
const INTERPRETER: &str = "TEST_TEMPORAL_PYTHON";
/// How long a program may take to print its next line.
const LIMIT: Duration = Duration::from_secs(60);

/// A running program. It is killed when this is dropped.
pub(crate) struct Python {
    name: String,
    process: Child,
    lines: mpsc::UnboundedReceiver<String>,
    /// What it wrote to its standard error.
    errors: std::fs::File,
}

impl Python {
    /// Starts a program of this folder.
    pub(crate) fn start(script: &str, arguments: &[&str]) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(script);
        let errors = tempfile::tempfile().expect("there is room for a file");
        let interpreter = interpreter();
        let mut process = Command::new(&interpreter)
            .arg("-B") // It leaves no compiled files in the tree.
            .arg(path)
            .args(arguments)
            .stdin(Stdio::piped()) // Closed with this process, however that ends.
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().expect("a file can be opened twice"))
            .spawn()
            .unwrap_or_else(|error| panic!("{} cannot be started: {error}\n{ADVICE}", interpreter.display()));
        let lines = lines_of(process.stdout.take().expect("it is piped"));
        Self { name: format!("{script} {}", arguments.join(" ")), process, lines, errors }
    }

    /// Waits until the program prints this line.
    pub(crate) async fn prints(&mut self, expected: &str) {
        let line = self.next_line().await;
        assert_eq!(line, expected, "{}", self.name);
    }

    /// Waits for a line of JSON.
    pub(crate) async fn answer(&mut self) -> Value {
        let line = self.next_line().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{} printed {line:?}: {error}", self.name))
    }

    async fn next_line(&mut self) -> String {
        match tokio::time::timeout(LIMIT, self.lines.recv()).await {
            Ok(Some(line)) => line,
            Ok(None) => panic!("{} ended without the line that was expected; its errors follow", self.name),
            Err(_) => panic!("{} printed no line within {LIMIT:?}; its errors follow", self.name),
        }
    }

    fn errors(&mut self) -> String {
        let mut text = String::new();
        let read = self.errors.rewind().and_then(|()| self.errors.read_to_string(&mut text));
        read.map_or_else(|error| format!("its errors cannot be read: {error}"), |_| text)
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let errors = self.errors();
        if !errors.is_empty() {
            eprintln!("{}:\n{errors}", self.name); // Shown for a test that fails.
        }
    }
}

/// Reads the lines on a thread of its own, which ends with the program.
fn lines_of(output: ChildStdout) -> mpsc::UnboundedReceiver<String> {
    let (send, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| send.send(line)).ok()
    });
    lines
}

fn interpreter() -> PathBuf {
    std::env::var_os(INTERPRETER).map(PathBuf::from).unwrap_or_else(|| panic!("{INTERPRETER} is not set. {ADVICE}"))
}

const ADVICE: &str = "Run the tests by `cargo xtask temporal`, which installs what they need; by hand: `pip install temporalio`, \
                      then set TEST_TEMPORAL_PYTHON to the path of that `python`";
