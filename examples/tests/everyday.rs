//! The examples for everyday life: polling, continue-as-new, changing code.

use std::sync::atomic::{AtomicU32, Ordering};

use dacapo::prelude::*;
use dacapo::{Catalog, Status};
use dacapo_engine::Options;
use dacapo_examples::counter::{ADD, STOP, TAKEN_BY_ONE_RUN, counter};
use dacapo_examples::polling::{ASKED_BY_ONE_RUN, ask, wait_for_job};
use dacapo_examples::versions::{email, letter, v1, v2, v3};
use dacapo_testkit::{Kit, Simulation};

/// A job that takes half an hour, asked for by a service that fails now and then.
#[test]
fn a_job_is_asked_for_once_a_minute_until_it_is_done() {
    let mut kit = Kit::new();
    let asked = AtomicU32::new(0);
    kit.fake(ask, move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        7 => Err("the service is out".into()),
        n if n > 31 => Ok(Some("printed".into())),
        _ => Ok(None),
    });
    let run = kit.start(wait_for_job, "job-1".into());
    let begun = kit.now();
    assert_eq!(kit.result(&run), Ok("printed".into()));
    assert_eq!(kit.now().since(begun).as_secs() / 60, 31);
    let histories = kit.histories();
    assert_eq!(histories.len(), 2, "it went on as a new run once");
    assert!(histories.iter().all(|(_, history)| history.turns.len() <= 2 * ASKED_BY_ONE_RUN as usize + 1));
}

#[test]
fn a_counter_counts_for_ever_with_a_short_history() {
    let mut kit = Kit::new();
    let run = kit.start(counter, 0);
    for n in 1..=95 {
        kit.signal(&run, ADD, n).unwrap();
    }
    kit.signal(&run, STOP, ()).unwrap();
    assert_eq!(kit.result(&run), Ok(95 * 96 / 2));
    let histories = kit.histories();
    assert_eq!(histories.len(), 10);
    assert!(histories.iter().all(|(_, history)| history.turns.len() <= TAKEN_BY_ONE_RUN as usize + 1));
}

/// A deploy of this version of the workflow.
fn serving<P>(workflow: impl Register<P>) -> Options {
    let mut catalog = Catalog::default();
    workflow.register(&mut catalog).unwrap();
    (letter, email).register(&mut catalog).unwrap();
    Options { registry: catalog.registry, ..Options::default() }
}

#[track_caller]
fn assert_told(sim: &Simulation, id: &'static str, how: &str) {
    let (status, told) = sim.result(id);
    assert_eq!((status, told.unwrap().as_text()), (Status::Completed, Some(how)));
}

#[test]
fn open_runs_go_on_as_they_began_while_the_code_changes() {
    let to = "\"ada\"";
    let sim = Simulation::new(serving(v1::remind));
    sim.start("remind", "old", to).unwrap();
    sim.settle();
    let sim = sim.redeploy(serving(v2::remind));
    sim.start("remind", "new", to).unwrap();
    sim.settle();
    assert_told(&sim, "old", "\"by letter\"");
    assert_told(&sim, "new", "\"by email\"");
    sim.start("remind", "newer", to).unwrap();
    sim.settle();
    let sim = sim.redeploy(serving(v3::remind));
    sim.start("remind", "newest", to).unwrap();
    assert_told(&sim, "newer", "\"by email\"");
    assert_told(&sim, "newest", "\"by email\"");
}

/// Without the patch the run would be stuck: it sent a letter, and the new code says an email.
#[test]
fn version_that_drops_an_old_patch_too_early_makes_its_runs_stuck() {
    let sim = Simulation::new(serving(v1::remind));
    sim.start("remind", "old", "\"ada\"").unwrap();
    sim.settle();
    let sim = sim.redeploy(serving(v3::remind));
    sim.advance(days(8));
    let described = sim.engine().describe(&dacapo_engine::RunId::of("old")).unwrap();
    assert!(described.stuck.unwrap().reason.contains("letter"), "it says what was recorded");
    let sim = sim.redeploy(serving(v2::remind));
    assert_told(&sim, "old", "\"by letter\"");
}

/// All files of a folder with this ending.
fn files(folder: &std::path::Path, ending: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let paths = entries.map(|entry| entry.expect("the entry can be read").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files(&path, ending),
            false => {
                vec![path].into_iter().filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
            }
        })
        .collect()
}

/// S4-9: what people learn from awaits a call once, and joins results where it wants them together, not calls so that they are
/// scheduled together.
#[test]
fn no_example_or_guide_awaits_a_call_twice_or_joins_calls_to_schedule_them() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let mut read = files(&root.join("examples"), "rs");
    read.retain(|path| !path.components().any(|part| part.as_os_str() == "tests"));
    read.extend(files(&root.join("docs"), "md"));
    read.push(root.join("README.md"));
    assert!(read.len() > 20, "{} files", read.len());
    let mut calls = 0;
    for path in read {
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        let dense: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        // Two apps that are served side by side are no calls of a workflow.
        let dense = dense.replace("tokio::try_join!(file.serve_until_signalled(),", "");
        for wrong in [".await.await", ".await?.await", "join!(", "join_all("] {
            assert!(!dense.contains(wrong), "{} has {wrong}", path.display());
        }
        calls += dense.matches("ctx.call(").count();
    }
    assert!(calls > 20, "{calls} calls of activities are in what was read");
}
