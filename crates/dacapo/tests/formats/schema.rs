//! The tables of a store's file.

use dacapo::prelude::*;
use dacapo_testkit::assert_golden;
use rusqlite::Connection;

use crate::MANIFEST;

const NOTE: Signal<u64> = Signal::new("note");

#[activity]
async fn double(number: u64) -> Result<u64, Failure> {
    Ok(2 * number)
}

#[workflow]
async fn doubles(ctx: Ctx) -> Result<u64, Failure> {
    ctx.set_attr(Attr::new("kind"), "doubled");
    let number = ctx.next_signal(NOTE).await?;
    ctx.call(double, number).await
}

async fn serve(path: &str) -> dacapo::Result<App> {
    Dacapo::open(&format!("sqlite:{path}")).await?.serve((doubles, double)).await
}

/// Returns the number of a file's schema, and the statements that made its tables and indexes.
fn schema(path: &str) -> (u64, i64, String) {
    let file = Connection::open(path).unwrap();
    let number = |pragma: &str| file.query_row(pragma, [], |row| row.get::<_, i64>(0)).unwrap();
    let sql = "SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid";
    let mut statement = file.prepare(sql).unwrap();
    let statements = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let text: String = statements.map(|statement| statement.unwrap() + "\n").collect();
    (number("PRAGMA user_version") as u64, number("PRAGMA application_id"), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_what_their_number_says_and_a_file_with_those_tables_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    serve(&path("new.db")).await.unwrap().stop().await;
    let (number, application, written) = schema(&path("new.db"));
    let kept = assert_golden(MANIFEST, "schema", number, "sql", &written);

    let file = Connection::open(path("kept.db")).unwrap();
    file.execute_batch(&format!("PRAGMA application_id = {application}; PRAGMA user_version = {number}; {kept}"))
        .unwrap();
    file.execute_batch(&format!("ATTACH '{}' AS new; INSERT INTO numbers SELECT * FROM new.numbers", path("new.db")))
        .unwrap();
    drop(file);
    let app = serve(&path("kept.db")).await.unwrap();
    let run = app.start(doubles, ()).id("a").await.unwrap();
    run.signal(NOTE, 4).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 8);
    app.stop().await;
    assert_eq!(schema(&path("kept.db")).2, kept);
}

#[tokio::test]
async fn file_of_a_later_number_is_refused_with_both_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later.db").to_str().unwrap().to_owned();
    serve(&path).await.unwrap().stop().await;
    let number = schema(&path).0;
    Connection::open(&path).unwrap().execute_batch(&format!("PRAGMA user_version = {}", number + 1)).unwrap();
    let refused = serve(&path).await.err().unwrap().to_string();
    let words = format!("schema version {}, and this build knows {number}", number + 1);
    assert!(refused.contains(&words), "{refused}");
    let refused = Dacapo::connect(&format!("sqlite:{path}")).await.err().unwrap().to_string();
    assert!(refused.contains(&words), "{refused}");
}

#[tokio::test]
async fn file_whose_tables_are_not_those_of_its_number_is_refused_and_one_with_an_index_more_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db").to_str().unwrap().to_owned();
    serve(&path).await.unwrap().stop().await;
    let change = |statement: &str| Connection::open(&path).unwrap().execute_batch(statement).unwrap();
    change("CREATE INDEX mine ON runs (started)");
    serve(&path).await.unwrap().stop().await;
    change("ALTER TABLE messages RENAME COLUMN sent TO written");
    let url = format!("sqlite:{path}");
    for refused in [serve(&path).await.err().unwrap(), Dacapo::connect(&url).await.err().unwrap()] {
        let refused = refused.to_string();
        assert!(refused.contains("its tables are not those of schema version 2"), "{refused}");
        assert!(refused.contains("move it away, and start with a new file"), "{refused}");
    }
}
