//! A rail journey that cannot be stopped: kill it at any moment, and run it again with the same command.

use anyhow::Result;
use dacapo::prelude::*;
use dacapo::{IdConflict, Status};
use dacapo_examples::journey::{Diary, collect_ticket, find_train, hold_seat, journey, pay, say};

#[tokio::main]
async fn main() -> Result<()> {
    let store = Dacapo::open(&dacapo_examples::url_or("sqlite:journey.db")).await?;
    let before = store.runs().describe("journey").await.ok().filter(|run| run.status == Status::Open);
    match before.and_then(|run| run.published) {
        Some(diary) => {
            let diary: Diary = dacapo::decode(&diary)?;
            say("This journey was begun before:\n");
            for (done, line) in diary.done.iter().enumerate() {
                say(&format!("step {:>2} of {}  {line}\n", done + 1, diary.of));
            }
            say(&format!("going on with step {} of {}\n", diary.next().number, diary.of));
        }
        None => say("A new journey. Kill it when you like, and run it again.\n"),
    }

    let app = store.serve((journey, find_train, hold_seat, pay, collect_ticket)).await?;
    let stations = ["Lisboa", "Madrid", "Barcelona", "Lyon", "Zürich"].map(String::from).to_vec();
    // The id makes it one journey, whichever process asks: one that is open already is the one we mean.
    let run = app.start(journey, stations).id("journey").id_conflict(IdConflict::UseExisting).await?;
    say(&format!("{}\n", run.result().await?));
    app.shutdown().await;
    Ok(())
}
