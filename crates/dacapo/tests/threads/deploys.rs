//! One process after another on the same file.

use dacapo::prelude::*;
use dacapo::{Dacapo, Filter, Name, Status};

const GO: Signal<u32> = Signal::new("go");

#[activity]
async fn note(text: String) -> Result<String, Failure> {
    Ok(format!("noted {text}"))
}

#[workflow]
async fn patient(ctx: Ctx, name: String) -> Result<String, Failure> {
    let first = ctx.call(note, name).await?;
    let number = ctx.next_signal(GO).await?;
    Ok(format!("{first}, {number}"))
}

/// S2-16
#[tokio::test(flavor = "multi_thread")]
async fn the_next_process_goes_on_with_every_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("patient.db").display());
    let first = Dacapo::open(&url).await.unwrap().serve((patient, note)).await.unwrap();
    for number in 0..20 {
        first.start(patient, format!("p{number}")).id(format!("p{number}")).await.unwrap();
    }
    let kept = first.handle(patient, "p0");
    kept.signal(GO, 7).await.unwrap();
    kept.result().await.unwrap();
    first.shutdown().await;
    let late = kept.signal(GO, 8).await.unwrap_err();
    assert_eq!(
        late.to_string(),
        "this backend is shut down: make the call in the process that serves the runs now",
        "a handle does not keep the file from the next process"
    );

    let second = Dacapo::open(&url).await.unwrap().serve((patient, note)).await.unwrap();
    assert_eq!(second.runs().count(&Filter::open()).await.unwrap(), 19);
    for number in 1..20 {
        let run = second.handle(patient, format!("p{number}"));
        run.signal(GO, number).await.unwrap();
        assert_eq!(run.result().await.unwrap(), format!("noted p{number}, {number}"));
    }
    assert_eq!(second.handle(patient, "p0").result().await.unwrap(), "noted p0, 7");
    assert_eq!(second.runs().count(&Filter::all().status(Status::Completed)).await.unwrap(), 20);
}

/// Before its first call, this build does something else than the one that recorded the run.
mod changed {
    use dacapo::prelude::*;

    #[workflow]
    pub async fn patient(ctx: Ctx, name: String) -> Result<String, Failure> {
        ctx.sleep(secs(1)).await?;
        Ok(name)
    }
}

/// Every turn names the build that played it, and a report names the build that recorded what the code no longer decides.
#[tokio::test(flavor = "multi_thread")]
async fn every_turn_names_its_build_and_reports_do() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("builds.db").display());
    let unnamed = Dacapo::open(&url).await.unwrap().serve((patient, note)).await.unwrap();
    unnamed.start(patient, "p".to_owned()).id("p").await.unwrap();
    unnamed.stop().await;
    let named = Dacapo::open(&url).await.unwrap().build("2.0").serve((patient, note)).await.unwrap();
    let run = named.handle(patient, "p");
    run.signal(GO, 7).await.unwrap();
    run.result().await.unwrap();
    let builds: Vec<Name> = run.transcript().await.unwrap().turns.into_iter().map(|turn| turn.build).collect();
    let [first, .., last] = &builds[..] else { panic!("{builds:?}") };
    assert!(first.starts_with("threads-") && *last == "2.0", "{builds:?}");
    assert!(builds.iter().all(|build| build == first || build == last), "{builds:?}");

    named.start(patient, "q".to_owned()).id("q").await.unwrap();
    named.stop().await;
    let later = Dacapo::open(&url).await.unwrap().build("3.0").serve((changed::patient, note)).await.unwrap();
    let run = later.handle(changed::patient, "q");
    // The run may be at rest: the signal wakes it.
    run.signal(GO, 7).await.unwrap();
    let found = run.result_or_stuck().await.unwrap_err().to_string();
    assert!(found.contains("activity note") && found.contains("by build 2.0"), "{found}");
}
