//! What there is once: the tables see to it, whatever the locks before them do.

use dacapo_store::{NewRun, TurnWrite};

use crate::kit::{QUIET, as_write, new, node, plain_turn, signal, start, started, write};
use crate::schema::Schema;

#[test]
fn tables_refuse_a_second_row_of_what_there_is_once() {
    let schema = Schema::new();
    let a = node(&schema.with(&format!("{QUIET}&node=a")));
    let run = started(&a.store, 1);
    write(&a.store, start(NewRun { request: Some("request".into()), ..new(2) })).unwrap();
    write(&a.store, signal(run, 1)).unwrap();
    write(&a.store, as_write(TurnWrite { tasks: vec![crate::kit::task(1, true)], ..plain_turn(run, 0) })).unwrap();
    // Each is the copy of a row, with these columns changed.
    for (table, of, changed) in [
        ("runs", "run_id = 'run-1'", r#""no": 1, "workflow_id": "other""#),
        ("runs", "run_id = 'run-1'", r#""no": 1, "run_id": "other""#),
        ("runs", "run_id = 'run-2'", r#""no": 1, "run_id": "other", "workflow_id": "other""#),
        ("runs", "run_id = 'run-1'", r#""run_id": "other", "workflow_id": "other""#),
        ("messages", "key = 'signal:1'", r#""no": 1"#),
        ("messages", "key = 'signal:1'", r#""key": "other""#),
        ("turns", "turn = 0", "\"record\": \"x\""),
        ("tasks", "seq = 1", r#""seq": 2"#),
        ("nodes", "name = 'a'", r#""no": 4711"#),
        ("shards", "no = 0", r#""queue": "other""#),
    ] {
        let copy = format!(
            "INSERT INTO {table} OVERRIDING SYSTEM VALUE \
             SELECT (jsonb_populate_record({table}, '{{{changed}}}')).* FROM {table} WHERE {of}"
        );
        schema.execute(&format!(
            "DO $$ BEGIN {copy}; RAISE 'a second row in {table}: {changed}'; \
             EXCEPTION WHEN unique_violation THEN NULL; END $$"
        ));
    }
}
