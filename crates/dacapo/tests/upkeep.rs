//! The life of a file: copies of it, histories that move, and a look at everything.

use std::io::Cursor;

use dacapo::Query;
use dacapo::prelude::*;
use dacapo::{Filter, Imported};
use dacapo_testkit::sealed_lines;
use tempfile::TempDir;

const GO: Signal<String> = Signal::new("go");
const SEEN: Query<(), u64> = Query::new("seen");

#[activity]
async fn step(number: u64) -> Result<u64, Failure> {
    Ok(number + 1)
}

#[workflow]
async fn counts(ctx: Ctx, steps: u64) -> Result<u64, Failure> {
    let seen = ctx.cell(0);
    let asked = seen.clone();
    ctx.on_query(SEEN, move |()| Ok(asked.read(|seen| *seen)));
    let mut number = 0;
    for _ in 0..steps {
        number = ctx.call(step, number).await?;
        seen.update(|seen| *seen = number);
    }
    Ok(number)
}

#[workflow]
async fn waits(ctx: Ctx) -> Result<String, Failure> {
    ctx.next_signal(GO).await
}

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    async fn serve(&self, name: &str) -> App {
        let url = format!("sqlite:{}", self.path(name));
        Dacapo::open(&url).await.unwrap().serve((counts, waits, step)).await.unwrap()
    }
}

/// Five runs that are closed and one that is open.
async fn fill(app: &App) {
    for number in 0..5 {
        let run = app.start(counts, number).id(format!("closed-{number}")).await.unwrap();
        assert_eq!(run.result().await.unwrap(), number);
    }
    app.start(waits, ()).id("open").await.unwrap();
}

#[tokio::test]
async fn backup_is_a_complete_store_as_of_one_moment() {
    let place = Place::new();
    let app = place.serve("a.db").await;
    fill(&app).await;
    app.runs().back_up(place.path("copy.db")).await.unwrap();
    let again = app.runs().back_up(place.path("copy.db")).await.unwrap_err();
    assert!(again.to_string().contains("is there already"), "{again}");
    let nowhere = app.runs().back_up(place.path("no/where.db")).await.unwrap_err();
    assert!(nowhere.to_string().contains("where.db"), "{nowhere}");
    app.handle(waits, "open").signal(GO, "later".into()).await.unwrap();
    assert_eq!(app.handle(waits, "open").result().await.unwrap(), "later");

    let copy = place.serve("copy.db").await;
    assert_eq!(copy.runs().count(&Filter::all()).await.unwrap(), 6);
    assert_eq!(copy.handle(counts, "closed-4").query(SEEN, ()).await.unwrap(), 4);
    let open = copy.handle(waits, "open");
    assert_eq!(open.describe().await.unwrap().status, Status::Open, "what came later is not in it");
    open.signal(GO, "elsewhere".into()).await.unwrap();
    assert_eq!(open.result().await.unwrap(), "elsewhere");
    assert_eq!(copy.runs().verify(|_| {}).await.unwrap(), []);
    assert!(!std::fs::exists(place.path("copy.db.part")).unwrap());
}

#[tokio::test]
async fn backup_is_complete_while_runs_go_on() {
    let place = Place::new();
    let app = place.serve("a.db").await;
    let busy = app.clone();
    let work = tokio::spawn(async move {
        for number in 0..200 {
            busy.start(counts, 3).id(format!("busy-{number}")).await.unwrap();
        }
    });
    for number in 0..5 {
        app.runs().back_up(place.path(&format!("copy-{number}.db"))).await.unwrap();
        let copy = Dacapo::open(&format!("sqlite:{}?mode=ro", place.path(&format!("copy-{number}.db")))).await;
        // A copy that was not served yet.
        assert_eq!(copy.unwrap().runs().verify(|_| {}).await.unwrap(), []);
    }
    work.await.unwrap();
}

#[tokio::test]
async fn histories_move_to_another_store_and_can_be_asked_there() {
    let place = Place::new();
    let app = place.serve("a.db").await;
    fill(&app).await;
    let (runs, file) = app.runs().export(&Filter::all(), Vec::new()).await.unwrap();
    assert_eq!(runs, 6);

    let other = Dacapo::open("memory:").await.unwrap().serve((counts, waits, step)).await.unwrap();
    other.start(waits, ()).id("closed-3").await.unwrap();
    let imported = other.import(Cursor::new(file.clone())).await.unwrap();
    assert_eq!((imported.runs, imported.known.len(), imported.open.len()), (5, 0, 1));
    assert_eq!(other.runs().count(&Filter::all()).await.unwrap(), 6);
    let (there, here) =
        (app.runs().transcript("closed-4").await.unwrap(), other.runs().transcript("closed-4").await.unwrap());
    assert_eq!(there.to_text(), here.to_text());
    assert_eq!(other.handle(counts, "closed-4").query(SEEN, ()).await.unwrap(), 4);
    assert_eq!(other.handle(counts, "closed-4").result().await.unwrap(), 4);
    let open = other.handle(waits, "closed-3").describe().await.unwrap();
    assert_eq!(open.status, Status::Open, "an open run is not hidden by an old one of its id");
    let again = other.import(Cursor::new(file)).await.unwrap();
    assert_eq!((again.runs, again.known.len(), again.open.len()), (0, 5, 1));
    assert_eq!(other.runs().verify(|_| {}).await.unwrap(), []);

    let only = Filter::all().workflow_id("closed-2");
    let (runs, one) = app.runs().export(&only, Vec::new()).await.unwrap();
    assert_eq!(runs, 1);
    let fresh = Dacapo::open("memory:").await.unwrap().serve((counts, step)).await.unwrap();
    assert_eq!(fresh.import(Cursor::new(one)).await.unwrap(), Imported { runs: 1, ..Imported::default() });
}

#[cfg(unix)]
#[tokio::test]
async fn export_to_a_file_has_mode_0600_and_replaces_nothing() {
    use std::os::unix::fs::MetadataExt;
    let place = Place::new();
    let app = place.serve("a.db").await;
    fill(&app).await;
    let path = place.path("histories.jsonl");
    assert_eq!(app.runs().export_to_file(&Filter::all(), &path).await.unwrap(), 6);
    let (_, expected) = app.runs().export(&Filter::all(), Vec::new()).await.unwrap();
    assert!(std::fs::read(&path).unwrap() == expected, "the file is what a writer gets");
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let refused = app.runs().export_to_file(&Filter::all(), &path).await.unwrap_err().to_string();
    assert!(refused.contains("histories.jsonl: File exists"), "{refused}");
    assert!(std::fs::read(&path).unwrap() == expected, "the file is left as it is");
}

#[tokio::test]
async fn export_of_a_damaged_turn_is_refused() {
    let place = Place::new();
    let app = place.serve("a.db").await;
    app.start(counts, 2).id("a").await.unwrap().result().await.unwrap();
    app.stop().await;
    let file = rusqlite::Connection::open(place.path("a.db")).unwrap();
    let mut record: Vec<u8> = file.query_row("SELECT record FROM turns WHERE turn = 1", [], |row| row.get(0)).unwrap();
    record[20] ^= 1;
    assert_eq!(file.execute("UPDATE turns SET record = ? WHERE turn = 1", [record]).unwrap(), 1);
    drop(file);
    let app = place.serve("a.db").await;
    let refused = app.runs().export(&Filter::all(), Vec::new()).await.unwrap_err().to_string();
    assert!(refused.contains("turn 1") && refused.contains("checksum does not match"), "{refused}");
}

/// A file without its checksums.
fn without_sums(file: &str) -> String {
    let begin = r#"{"sum":"01234567","#.len();
    file.lines().map(|line| format!("{{{}\n", &line[begin..])).collect()
}

#[tokio::test]
async fn import_of_a_damaged_file_names_the_line() {
    let app = Dacapo::open("memory:").await.unwrap().serve((counts, step)).await.unwrap();
    app.start(counts, 2).id("a").await.unwrap().result().await.unwrap();
    let (_, file) = app.runs().export(&Filter::all(), Vec::new()).await.unwrap();
    let text = without_sums(&String::from_utf8(file).unwrap());
    let lines: Vec<&str> = text.lines().collect();
    let other = Dacapo::open("memory:").await.unwrap().serve((counts, step)).await.unwrap();
    for (damaged, words) in [
        ("{\"hello\":1}".to_owned(), "line 1"),
        (text.replace("dacapo histories", "something else"), "no file of histories"),
        (text.replace("\"version\":1", "\"version\":9"), "version 9"),
        (lines[..3].join("\n"), "ends within a run"),
        ([&lines[..3], &lines[4..]].concat().join("\n"), "line 4"),
        (text.replacen("\"record\":\"", "\"record\":\"AAAA", 1), "turn 0"),
        (text.replace("\"status\":1", "\"status\":77"), "status 77"),
    ] {
        // With the right checksums, so that the damage is found by what the lines say.
        let damaged = sealed_lines(damaged.lines().map(str::to_owned));
        let refused = other.import(Cursor::new(damaged)).await.unwrap_err().to_string();
        assert!(refused.contains(words), "{words}: {refused}");
        assert_eq!(other.runs().count(&Filter::all()).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn verify_finds_missing_and_damaged_records() {
    let place = Place::new();
    let app = place.serve("a.db").await;
    fill(&app).await;
    let mut told = Vec::new();
    let (tell, hear) = std::sync::mpsc::channel();
    assert_eq!(app.runs().verify(move |seen| tell.send(seen).unwrap()).await.unwrap(), []);
    told.extend(hear);
    assert_eq!(told, [6]);
    app.shutdown().await;
    let file = rusqlite::Connection::open(place.path("a.db")).unwrap();
    file.execute_batch(
        "DELETE FROM turns WHERE turn = 1 AND run = (SELECT no FROM runs WHERE workflow_id = 'closed-4');
         UPDATE turns SET record = x'00' WHERE run = (SELECT no FROM runs WHERE workflow_id = 'closed-1') AND turn = 0;
         UPDATE runs SET turns = 9 WHERE workflow_id = 'closed-2';
         UPDATE runs SET result = NULL WHERE workflow_id = 'closed-0'",
    )
    .unwrap();
    drop(file);
    let store = Dacapo::open(&format!("sqlite:{}?mode=ro", place.path("a.db"))).await.unwrap();
    let problems: Vec<String> = store.runs().verify(|_| {}).await.unwrap().iter().map(ToString::to_string).collect();
    for (run, words) in [
        ("closed-4", "turn 2 follows where turn 1 should be"),
        ("closed-2", "its number of turns, epoch and crash count do not match the checksum"),
        ("closed-1", "a turn cannot be read: turn 0 of run"),
        ("closed-0", "its status, its end and its result do not match the checksum"),
    ] {
        assert!(
            problems.iter().any(|problem| problem.contains(run) && problem.contains(words)),
            "{run}: {words}: {problems:#?}"
        );
    }
    assert_eq!(problems.len(), 4, "{problems:#?}");
}

/// `rm` of the file of a program at rest: its shutdown was quiet, and ended with exit code 0.
#[tokio::test]
async fn a_shutdown_tells_that_the_file_is_gone() {
    let place = Place::new();
    let app = place.serve("orders.db").await;
    app.start(waits, ()).id("open").await.unwrap();
    std::fs::remove_file(place.path("orders.db")).unwrap();
    let told = app.shutdown().await.error.unwrap().to_string();
    assert!(told.contains("orders.db was removed or replaced"), "{told}");
    let app = place.serve("others.db").await;
    assert_eq!(app.shutdown().await.error, None);
}

/// A backend may ignore pins that it does not know: the connection asks it before.
#[tokio::test(flavor = "multi_thread")]
async fn start_with_a_policy_is_not_sent_to_a_backend_that_has_none() {
    let place = Place::new();
    place.serve("a.db").await.shutdown().await;
    let connection = Dacapo::connect(&format!("sqlite:{}", place.path("a.db"))).await.unwrap();
    let pins = dacapo::Pins { policy: dacapo::core::PolicySpec::Random { seed: 1 }, ..Default::default() };
    let refused = connection.start(counts, 1).pins(pins).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "this backend (sqlite, read-only) does not support scheduler policies other than the deterministic one: pin the run \
         to the deterministic one"
    );
}
