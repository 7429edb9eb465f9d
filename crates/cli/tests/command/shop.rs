//! A program that serves orders, and the command beside it.

use std::process::{Command, Output};
use std::time::Duration;

use dacapo::Query as QueryName;
use dacapo::prelude::*;
use serde_json::Value;

const PAID: Signal<i64> = Signal::new("paid");
const STATE: QueryName<(), String> = QueryName::new("state");

#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    item: String,
    cents: i64,
}

/// Reserves the item, waits until it is paid, and sends it.
#[workflow]
async fn order(ctx: Ctx, order: Order) -> Result<String, Failure> {
    let state = ctx.cell("reserves");
    let seen = state.clone();
    ctx.on_query(STATE, move |()| Ok(seen.read(|state| (*state).to_owned())));
    ctx.call(reserve, order.item.clone()).await?;
    state.update(|state| *state = "waits for the money");
    while ctx.next_signal(PAID).await? < order.cents {}
    ctx.sleep(Duration::from_millis(10)).await?;
    Ok(format!("{} is on its way", order.item))
}

/// Reserves an item.
#[activity]
async fn reserve(_item: String) -> Result<(), Failure> {
    Ok(())
}

pub(crate) struct Shop {
    app: Option<App>,
    url: String,
    _folder: tempfile::TempDir,
}

/// The command on this place.
pub(crate) fn command(url: Option<&str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dacapo"));
    command.env_remove("DACAPO_URL").env_remove("NO_COLOR");
    if let Some(url) = url {
        command.env("DACAPO_URL", url);
    }
    command
}

impl Shop {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("orders.db").display());
        let app = Dacapo::open(&url).await.unwrap().serve((order, reserve)).await.unwrap();
        Self { app: Some(app), url, _folder: folder }
    }

    pub(crate) async fn start(&self, id: &str) {
        let order_of = Order { item: "lamp".to_owned(), cents: 700 };
        self.app.as_ref().unwrap().start(order, order_of).id(id.to_owned()).await.unwrap();
        self.until_open(id).await;
    }

    /// Waits until a run has reserved its item.
    pub(crate) async fn until_open(&self, id: &str) {
        let handle = self.app.as_ref().unwrap().handle(order, id.to_owned());
        while handle.query(STATE, ()).await.unwrap() != "waits for the money" {
            // sleep: nothing says when a query will be answered differently.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn stop(&mut self) {
        self.app.take().unwrap().shutdown().await;
    }

    fn output(&self, words: &[&str]) -> Output {
        // The program that serves runs on this thread's runtime.
        tokio::task::block_in_place(|| command(Some(&self.url)).args(words).output().unwrap())
    }

    pub(crate) fn ok(&self, words: &[&str]) -> String {
        let output = self.output(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.ok(&words)).unwrap()
    }

    pub(crate) fn fails(&self, words: &[&str]) -> (i32, String) {
        let output = self.output(words);
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }
}

/// The text without what differs each time.
pub(crate) fn masked(text: &str) -> String {
    let line = |line: &str| {
        let mut words: Vec<String> = Vec::new();
        let mut rest = line.to_owned();
        if let (Some(from), Some(to)) = (rest.find('▕'), rest.find('▏')) {
            rest.replace_range(from + '▕'.len_utf8()..to, "BAR");
            if let Some(place) = rest.find("▏ ") {
                rest.replace_range(place + "▏ ".len().., "TIME");
            }
            return rest;
        }
        for part in rest.split(' ') {
            words.push(part.to_owned());
        }
        let mut line = words.join(" ");
        while let Some(at) = moment_in(&line) {
            line.replace_range(at..at + 19, "MOMENT");
        }
        for (word, mask) in [("run id ", "ID"), ("turns ", "TURNS")] {
            if let Some(at) = line.find(word) {
                let value = line[at + word.len()..].trim_start().to_owned();
                line = line.replace(&value, mask);
            }
        }
        if let Some(at) = line.find(", after ") {
            line.replace_range(at + ", after ".len().., "TIME");
        }
        line
    };
    text.lines().map(|text| line(text).trim_end().to_owned() + "\n").collect()
}

/// Where a moment such as `2026-02-28 09:30:00` stands.
fn moment_in(line: &str) -> Option<usize> {
    let is_moment = |part: &[u8]| {
        part.iter().enumerate().all(|(place, byte)| match place {
            4 | 7 => *byte == b'-',
            10 => *byte == b' ',
            13 | 16 => *byte == b':',
            _ => byte.is_ascii_digit(),
        })
    };
    line.as_bytes().windows(19).position(is_moment)
}
