//! Files of histories: what is in them, in which order, and what is refused.

use std::io::{BufRead, Cursor, Read, Seek, SeekFrom, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dacapo::prelude::*;
use dacapo::{ClientError, Error, Filter, Imported};
use dacapo_testkit::sealed_lines;
use serde_json::{Value, json};

const HIT: Update<u64, u64> = Update::new("hit");
const GO: Signal<String> = Signal::new("go");
const COLOUR: Attr<String> = Attr::new("colour");

#[activity]
async fn step(number: u64) -> Result<u64, Failure> {
    Ok(number + 1)
}

#[workflow]
async fn counts(ctx: Ctx, steps: u64) -> Result<u64, Failure> {
    let mut number = 0;
    for _ in 0..steps {
        number = ctx.call(step, number).await?;
    }
    Ok(number)
}

/// Answers updates until a signal ends it.
#[workflow]
async fn answers(ctx: Ctx) -> Result<String, Failure> {
    ctx.on_update(HIT, |_| Ok(()), |number| async move { Ok(2 * number) });
    ctx.next_signal(GO).await
}

#[workflow]
async fn goes_on(ctx: Ctx, more: u64) -> Result<u64, Failure> {
    if more > 0 {
        return Err(ctx.continue_as_new(goes_on, more - 1));
    }
    Ok(7)
}

async fn serve(url: &str) -> App {
    Dacapo::open(url).await.unwrap().serve((counts, answers, goes_on, step)).await.unwrap()
}

async fn exported(app: &App) -> String {
    let (_, file) = app.runs().export(&Filter::all(), Vec::new()).await.unwrap();
    String::from_utf8(file).unwrap()
}

async fn import(app: &App, file: impl Into<String>) -> dacapo::Result<Imported> {
    app.import(Cursor::new(file.into())).await
}

/// The lines of each run of a file.
fn runs_of(file: &str) -> Vec<Vec<Value>> {
    let mut runs = Vec::new();
    for mut line in file.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        line.as_object_mut().unwrap().remove("sum");
        match (line.get("run"), line.get("file").or(line.get("complete"))) {
            (Some(_), _) => runs.push(vec![line]),
            (None, None) => runs.last_mut().unwrap().push(line),
            _ => {}
        }
    }
    runs
}

/// A file of these runs, with the checksums of its lines.
fn file_of(runs: &[Vec<Value>]) -> String {
    file_of_version(1, runs)
}

fn file_of_version(version: u32, runs: &[Vec<Value>]) -> String {
    let mut lines = vec![json!({"file": {"kind": "dacapo histories", "version": version}})];
    lines.extend(runs.iter().flatten().cloned());
    lines.push(json!({"complete": {"runs": runs.len()}}));
    sealed_lines(lines.iter().map(Value::to_string))
}

/// The runs of a workflow id were written newest first, so that elsewhere the first counted as the last.
#[tokio::test]
async fn import_keeps_the_order_of_runs_of_one_workflow_id() {
    let app = serve("memory:").await;
    for steps in [1, 2, 3] {
        app.start(counts, steps).id("same").await.unwrap().result().await.unwrap();
    }
    let file = exported(&app).await;
    let mut reversed = runs_of(&file);
    reversed.reverse();
    for file in [file.clone(), file_of(&reversed)] {
        for url in ["memory:", "sqlite:"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.db");
            let other =
                serve(&if url == "memory:" { url.to_owned() } else { format!("{url}{}", path.display()) }).await;
            assert_eq!(import(&other, file.clone()).await.unwrap().runs, 3);
            assert_eq!(other.handle(counts, "same").result().await.unwrap(), 3);
            other.start(counts, 4).id("same").await.unwrap().result().await.unwrap();
            assert_eq!(other.handle(counts, "same").result().await.unwrap(), 4);
            other.stop().await;
        }
    }
    // Beside a newer run of that store.
    let other = serve("memory:").await;
    other.start(counts, 9).id("same").await.unwrap().result().await.unwrap();
    assert_eq!(import(&other, file).await.unwrap().runs, 3);
    assert_eq!(other.handle(counts, "same").result().await.unwrap(), 9);
}

#[tokio::test]
async fn export_includes_answers_request_ids_and_attributes() {
    let app = serve("memory:").await;
    let start = |app: &App| app.start(answers, ()).id("a").request_id("once").attr(COLOUR, "red".into());
    let run = start(&app).await.unwrap();
    assert_eq!(run.update(HIT, 4).request_id("u").await.unwrap(), 8);
    run.signal(GO, "end".into()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "end");
    let file = exported(&app).await;
    assert!(file.contains("\"attribute\":{\"name\":\"colour\""), "{file}");

    let other = serve("memory:").await;
    assert_eq!(import(&other, file.clone()).await.unwrap().runs, 1);
    assert_eq!(
        other.handle(answers, "a").update(HIT, 4).request_id("u").await.unwrap(),
        8,
        "it is known, though the run is closed"
    );
    assert!(!start(&other).await.unwrap().is_new(), "the same request is the same start");
    assert_eq!(runs_of(&exported(&other).await), runs_of(&file));
}

/// Writes into memory, and stops where the first run begins until it may go on.
struct Pausing {
    bytes: Vec<u8>,
    reached: Option<Sender<()>>,
    may_go_on: Receiver<()>,
}

impl Write for Pausing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        if let Some(reached) = self.reached.take_if(|_| bytes.windows(7).any(|part| part == b"\"run\":{")) {
            reached.send(()).unwrap();
            self.may_go_on.recv().unwrap();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An export ended with an error when retention was faster, and a slow writer blocked all readers.
#[tokio::test]
async fn runs_that_are_deleted_during_an_export_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let app = serve(&format!("sqlite:{}", folder.path().join("a.db").display())).await;
    for number in 0..4 {
        app.start(counts, 2).id(format!("run-{number}")).await.unwrap().result().await.unwrap();
    }
    let ((reached, reaches), (go_on, may_go_on)) = (channel(), channel());
    let pausing = Pausing { bytes: Vec::new(), reached: Some(reached), may_go_on };
    let looking = app.clone();
    let export = tokio::spawn(async move { looking.runs().export(&Filter::all(), pausing).await });
    tokio::task::spawn_blocking(move || reaches.recv().unwrap()).await.unwrap();
    for number in 0..3 {
        app.handle(counts, format!("run-{number}")).delete().await.unwrap();
    }
    let left = rusqlite::Connection::open(folder.path().join("a.db")).unwrap();
    let is_swept = || left.query_row("SELECT count(*) FROM garbage", [], |row| row.get::<_, i64>(0)).unwrap() == 0;
    let began = Instant::now();
    while !is_swept() {
        assert!(began.elapsed() < secs(120), "the turns of deleted runs are still there");
        tokio::task::yield_now().await;
    }
    go_on.send(()).unwrap();
    let (runs, Pausing { bytes, .. }) = export.await.unwrap().unwrap();
    assert_eq!(runs, 1);
    let file = String::from_utf8(bytes).unwrap();
    assert!(file.contains("\"gone\""), "the first was begun: {file}");
    let other = serve("memory:").await;
    assert_eq!(import(&other, file).await.unwrap().runs, 1);
    assert_eq!(other.handle(counts, "run-3").result().await.unwrap(), 2);
}

#[tokio::test]
async fn import_of_a_truncated_file_changes_nothing() {
    let app = serve("memory:").await;
    for id in ["a", "b"] {
        app.start(counts, 1).id(id).await.unwrap().result().await.unwrap();
    }
    let file = exported(&app).await;
    let lines: Vec<&str> = file.lines().collect();
    let other = serve("memory:").await;
    for lines_kept in 0..lines.len() {
        let cut = lines[..lines_kept].iter().map(|line| format!("{line}\n")).collect::<String>();
        let refused = import(&other, cut).await.unwrap_err().to_string();
        let words = if lines_kept == 0 { "no file of histories" } else { "the file " };
        assert!(refused.contains(words), "{lines_kept}: {refused}");
    }
    let runs = runs_of(&file);
    let whole = file_of(&runs);
    let first_line_of_second = 1 + runs[0].len();
    let kept = whole.lines().enumerate().filter(|(at, _)| *at == 0 || *at >= first_line_of_second);
    let one_left_out = sealed_lines(kept.map(|(_, line)| format!("{{{}", &line["{\"sum\":\"01234567\",".len()..])));
    let refused = import(&other, one_left_out).await.unwrap_err().to_string();
    assert!(refused.contains("has 1 runs, and was written with 2"), "{refused}");
    let refused = import(&other, format!("{file}{}\n", lines[1])).await.unwrap_err().to_string();
    assert!(refused.contains("something follows the end"), "{refused}");
    assert_eq!(other.runs().count(&Filter::all()).await.unwrap(), 0);
    assert_eq!(import(&other, file).await.unwrap().runs, 2);
}

#[tokio::test]
async fn file_of_a_later_version_or_of_a_development_build_is_refused() {
    let other = serve("memory:").await;
    let refused = import(&other, file_of_version(2, &[])).await.unwrap_err().to_string();
    assert!(refused.contains("they have version 2, and this build reads version 1"), "{refused}");
    let unsealed = format!("{}\n", json!({"file": {"kind": "dacapo histories", "version": 2}}));
    let refused = import(&other, unsealed).await.unwrap_err().to_string();
    assert!(refused.contains("a development build wrote it before the first numbered format"), "{refused}");
}

#[tokio::test]
async fn run_with_an_attribute_that_no_store_can_hold_is_refused() {
    let app = serve("memory:").await;
    let run = app.start(counts, 1).id("a").attr(COLOUR, "red".to_owned()).await.unwrap();
    run.result().await.unwrap();
    let runs = runs_of(&exported(&app).await);
    let other = serve("memory:").await;
    for (attribute, words) in [
        (json!({"name": "", "value": {"keyword": "red"}}), "a search attribute is empty"),
        (json!({"name": "colour", "value": {"keyword": "x".repeat(300)}}), "at most 255 are allowed"),
        (json!({"name": "colour", "value": {"keywords": []}}), "the list has no keyword"),
        (json!({"name": "colour", "value": {"shade": "red"}}), "unknown variant"),
    ] {
        let mut forged = runs[0].clone();
        let line = forged.iter_mut().find(|line| line.get("attribute").is_some()).unwrap();
        line["attribute"] = attribute;
        let refused = import(&other, file_of(&[forged])).await.unwrap_err().to_string();
        assert!(refused.contains(words), "{words}: {refused}");
    }
    assert_eq!(import(&other, file_of(&runs)).await.unwrap().runs, 1);
}

/// One flipped bit in an exported result was imported as another result.
#[tokio::test]
async fn file_with_a_flipped_bit_is_refused_wherever_it_is() {
    let app = serve("memory:").await;
    let run = app.start(counts, 1).id("a").await.unwrap();
    run.result().await.unwrap();
    let (_, file) = app.runs().export(&Filter::all(), Vec::new()).await.unwrap();
    let other = serve("memory:").await;
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 1 << (at % 8);
        let refused = other.import(Cursor::new(damaged)).await;
        assert!(matches!(refused, Err(Error::Client(ClientError::InvalidArgument(_)))), "byte {at}: {refused:?}");
    }
    assert_eq!(other.runs().count(&Filter::all()).await.unwrap(), 0);
    assert_eq!(other.import(Cursor::new(file)).await.unwrap().runs, 1);
}

#[tokio::test]
async fn file_with_a_line_left_out_doubled_or_moved_is_refused() {
    let app = serve("memory:").await;
    let run = app.start(answers, ()).id("a").await.unwrap();
    run.update(HIT, 1).await.unwrap();
    run.signal(GO, "on".to_owned()).await.unwrap();
    run.result().await.unwrap();
    app.start(counts, 1).id("b").await.unwrap().result().await.unwrap();
    let file = exported(&app).await;
    let lines: Vec<&str> = file.lines().collect();
    assert!(lines.iter().any(|line| line.contains("\"message\"")), "messages are among them");
    let other = serve("memory:").await;
    let refuse = async |lines: &[&str], what: &str| {
        let file = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let refused = import(&other, file).await;
        assert!(matches!(refused, Err(Error::Client(ClientError::InvalidArgument(_)))), "{what}: {refused:?}");
    };
    for at in 0..lines.len() {
        refuse(&[&lines[..at], &lines[at + 1..]].concat(), &format!("without line {at}")).await;
        refuse(&[&lines[..at], &lines[at..=at], &lines[at..]].concat(), &format!("line {at} twice")).await;
        let mut moved = lines.clone();
        moved.swap(at, (at + 1) % lines.len());
        refuse(&moved, &format!("line {at} later")).await;
    }
    assert_eq!(other.runs().count(&Filter::all()).await.unwrap(), 0);
}

#[tokio::test]
async fn run_whose_result_is_not_what_its_last_turn_decided_is_refused() {
    let app = serve("memory:").await;
    for steps in [1, 2] {
        app.start(counts, steps).id(format!("of {steps}")).await.unwrap().result().await.unwrap();
    }
    app.start(answers, ()).id("terminated").await.unwrap().terminate("enough").await.unwrap();
    let runs = runs_of(&exported(&app).await);
    let other = serve("memory:").await;
    for (run, status, result) in [(0, 0, 1), (0, 2, 2), (2, 0, 0), (2, 2, 0), (0, 2, 0)] {
        let mut forged = runs[run].clone();
        forged[0]["run"]["status"] = runs[status][0]["run"]["status"].clone();
        forged[0]["run"]["result"] = runs[result][0]["run"]["result"].clone();
        let refused = import(&other, file_of(&[forged])).await.unwrap_err().to_string();
        assert!(refused.contains("its result is not what its last turn decided"), "{refused}");
    }
    assert_eq!(import(&other, file_of(&runs)).await.unwrap().runs, 3);
}

/// A chain of three runs, of which the first two go on, and a file in which one of these goes on as this one says.
async fn chain() -> (Vec<Vec<Value>>, impl Fn(usize, usize) -> Vec<Value>) {
    let app = serve("memory:").await;
    app.start(goes_on, 2).id("c").await.unwrap().result().await.unwrap();
    let runs = runs_of(&exported(&app).await);
    let sound = runs.clone();
    let ids: Vec<String> = runs.iter().map(|run| run[0]["run"]["run_id"].as_str().unwrap().to_owned()).collect();
    let going_on = move |run: usize, next: usize| {
        let result = STANDARD.decode(runs[0][0]["run"]["result"].as_str().unwrap()).unwrap();
        let at = result.windows(ids[1].len()).position(|part| part == ids[1].as_bytes()).unwrap();
        let mut changed = result;
        changed[at..at + ids[1].len()].copy_from_slice(ids[next].as_bytes());
        let mut run = runs[run].clone();
        run[0]["run"]["result"] = STANDARD.encode(&changed).into();
        run[0]["run"]["status"] = runs[0][0]["run"]["status"].clone();
        run
    };
    (sound, going_on)
}

#[tokio::test]
async fn import_refuses_runs_that_continue_as_each_other() {
    let (runs, going_on) = chain().await;
    let other = serve("memory:").await;
    for (file, words) in [
        (file_of(&[going_on(0, 0), runs[1].clone()]), "goes on as itself"),
        (file_of(&[going_on(0, 1), going_on(1, 0)]), "without an end"),
    ] {
        let refused = import(&other, file).await.unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
    assert_eq!(other.runs().count(&Filter::all()).await.unwrap(), 0);
}

/// Two files that are valid by themselves. A call of `result` never returned.
#[tokio::test]
async fn result_of_runs_that_continue_as_each_other_is_an_error() {
    let (_, going_on) = chain().await;
    let other = serve("memory:").await;
    for run in [going_on(0, 1), going_on(1, 0)] {
        assert_eq!(import(&other, file_of(&[run])).await.unwrap().runs, 1);
    }
    let told = other.handle(goes_on, "c").result().await;
    assert!(matches!(told, Err(Error::Client(ClientError::Damaged(_)))), "{told:?}");
}

/// One line that does not end.
struct Endless;

impl Read for Endless {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        to.fill(b' ');
        Ok(to.len())
    }
}

impl BufRead for Endless {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        Ok(&[b' '; 1 << 16])
    }

    fn consume(&mut self, _: usize) {}
}

impl Seek for Endless {
    fn seek(&mut self, _: SeekFrom) -> std::io::Result<u64> {
        Ok(0)
    }
}

#[tokio::test]
async fn import_refuses_a_line_that_does_not_end() {
    let refused = serve("memory:").await.import(Endless).await.unwrap_err().to_string();
    assert!(refused.contains("longer than"), "{refused}");
}
