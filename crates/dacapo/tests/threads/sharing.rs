//! Opening a file that another program serves.

use dacapo::prelude::*;
use dacapo::{Dacapo, Filter, Status};

#[workflow]
async fn sleeper(ctx: Ctx) -> Result<(), Failure> {
    Ok(ctx.sleep(days(1)).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn served_file_can_be_read_and_not_served_twice() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("shared.db").display());
    let app = Dacapo::open(&url).await.unwrap().serve(sleeper).await.unwrap();
    app.start(sleeper, ()).id("s").await.unwrap();

    let refused = Dacapo::open(&url).await.err().unwrap().to_string();
    assert!(
        refused.contains("is being served by this very process") && refused.contains("Dacapo::connect"),
        "{refused}"
    );

    let looking = Dacapo::open(&format!("{url}?mode=ro")).await.unwrap();
    let page = looking.runs().list(&Filter::open(), 10).await.unwrap();
    assert_eq!(page.runs.iter().map(|run| run.workflow_id.as_str()).collect::<Vec<_>>(), ["s"]);
    assert_eq!(looking.runs().describe("s").await.unwrap().status, Status::Open);
    assert_eq!(looking.runs().transcript("s").await.unwrap().turns.len(), 1);

    app.handle(sleeper, "s").terminate("enough").await.unwrap();
    assert_eq!(looking.runs().describe("s").await.unwrap().status, Status::Terminated);
    app.shutdown().await;
    Dacapo::open(&url).await.unwrap().serve(sleeper).await.unwrap();
}
