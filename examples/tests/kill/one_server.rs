//! One process serves a file; others may look.

use std::io::Read;
use std::time::Instant;

use dacapo::prelude::*;
use dacapo::{ClientError, Error, Filter};

use crate::mill::{Ended, Mill, wait_for};

/// While one process serves a file, another is refused and told why; readers list, describe and tell histories. When it is
/// killed, nothing stays locked: the next one serves at once.
///
/// T-26
#[tokio::test]
async fn a_killed_server_leaves_nothing_locked() {
    // So much work that it is not done before it is killed.
    let mill = Mill::new(420);
    let url = format!("sqlite:{}", mill.file());
    let mut first = mill.start(1);
    wait_for(first.stdout.as_mut().unwrap(), "serving");

    let refused = Dacapo::open(&url).await.err().unwrap();
    assert!(matches!(refused, Error::Client(ClientError::Busy(_))), "{refused:?}");
    let mut second = mill.start(2);
    let mut complaint = String::new();
    second.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(1));
    assert!(
        complaint.contains("One process serves a file at a time; look at it with `Dacapo::connect`"),
        "{complaint}"
    );

    let looking = Dacapo::open(&format!("{url}?mode=ro")).await.unwrap();
    let mut page = looking.runs().list(&Filter::all(), 10).await.unwrap();
    let begun = Instant::now();
    while page.runs.iter().all(|run| run.turns == 0) {
        assert!(begun.elapsed() < secs(60), "no run makes a turn");
        tokio::task::yield_now().await;
        page = looking.runs().list(&Filter::all(), 10).await.unwrap();
    }
    let run = page.runs.iter().find(|run| run.turns > 0).unwrap();
    let described = looking.runs().describe(run.workflow_id.clone()).await.unwrap();
    assert_eq!(described.workflow_id, run.workflow_id);
    assert!(!looking.runs().transcript(run.workflow_id.clone()).await.unwrap().turns.is_empty());
    assert!(matches!(looking.serve(()).await.err(), Some(Error::Client(ClientError::ReadOnly(_)))));

    first.kill().unwrap();
    first.wait().unwrap();
    let counted = Dacapo::open(&url).await.unwrap().runs().count(&Filter::all()).await.unwrap();
    assert!(counted > 0);
    assert_eq!(mill.live(3, None), Ended::Done);
}
