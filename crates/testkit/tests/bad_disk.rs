//! A whole engine on a disk that is full for a while, or fails once, at every change: runs go on, in the same process when
//! there is room again, or in the next after a failure, and nothing that was acknowledged is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dacapo_client::Error;
use dacapo_core::{Ctx, Payload, Signal, Workflow};
use dacapo_engine::{NewStart, Options, RunId};
use dacapo_faults::{Disk, Fault};
use dacapo_sqlite::SqliteStore;
use dacapo_store::Status;
use dacapo_testkit::Simulation;
use dacapo_worker::Activity;

const STEPS: usize = 4;

/// Steps, a timer and a signal; the result names how many steps were recorded.
fn options(made: &Arc<AtomicUsize>) -> Options {
    let made = made.clone();
    let mut options = Options::default();
    let story = Workflow::new("story", |ctx: Ctx, _: Vec<Payload>| async move {
        for _ in 0..STEPS {
            ctx.activity("step", "").await?;
        }
        ctx.sleep(Duration::from_secs(60)).await?;
        let signal = ctx.next_signal("go").await?;
        Ok(signal.input[0].clone())
    });
    options.registry.workflow(story).unwrap();
    let step = Activity::blocking("step", move |_, _| {
        made.fetch_add(1, Ordering::Relaxed);
        Ok(Payload::default())
    });
    options.registry.activity(step).unwrap();
    options
}

struct Setup {
    disk: Disk,
    sim: Simulation,
    made: Arc<AtomicUsize>,
}

impl Setup {
    fn new() -> Self {
        let (disk, made) = (Disk::new(), Arc::default());
        let store = Arc::new(SqliteStore::open(&disk.path("store.db")).unwrap());
        let sim = Simulation::over(store, options(&made));
        Self { disk, sim, made }
    }

    /// Starts the story, plays it and sends its signal. The caller sends each request again until it is answered, or the
    /// engine has stopped. Returns how often the disk was full for the caller.
    fn play(&self) -> Result<usize, Error> {
        let mut full = 0;
        let mut insist = |ask: &dyn Fn() -> Result<(), Error>| loop {
            match ask() {
                Err(Error::Full(_)) => full += 1,
                answer => return answer,
            }
            assert!(full < 100, "the disk has room again and still counts as full");
            self.sim.advance(Duration::from_secs(1));
        };
        insist(&|| {
            let new = NewStart {
                workflow: "story".into(),
                workflow_id: "a".into(),
                request: Some("once".into()),
                ..NewStart::default()
            };
            self.sim.wait(self.sim.engine().start(new)).map(drop)
        })?;
        self.sim.advance(Duration::from_secs(30));
        insist(&|| {
            let go = Signal { name: "go".into(), input: vec!["on".into()], ..Signal::default() };
            self.sim.wait(self.sim.engine().signal(&RunId::of("a"), go, Some("once".into()))).map(drop)
        })?;
        // The longest pause before a turn is tried again is far shorter.
        self.sim.advance(Duration::from_secs(7_200));
        Ok(full)
    }

    fn status(&self) -> Option<Status> {
        self.sim.engine().describe(&RunId::of("a")).ok().map(|run| run.status)
    }
}

/// How many changes the story makes to a disk on which nothing goes wrong.
fn changes() -> (u64, u64) {
    let setup = Setup::new();
    let before = setup.disk.counts().changes;
    assert_eq!(setup.play(), Ok(0));
    assert_eq!((setup.status(), setup.made.load(Ordering::Relaxed)), (Some(Status::Completed), STEPS));
    (before, setup.disk.counts().changes)
}

#[test]
fn runs_go_on_by_themselves_when_a_full_disk_has_room_again() {
    let (before, after) = changes();
    let mut met = 0;
    for change in before..after {
        let setup = Setup::new();
        setup.disk.fail_from(change, 8, Fault::Full);
        met += setup.play().unwrap_or_else(|error| panic!("change {change}: the engine stopped: {error}"));
        assert_eq!(setup.status(), Some(Status::Completed), "change {change}");
    }
    assert!(met > 0, "a caller was told that the disk is full");
}

#[test]
fn after_a_disk_has_failed_the_engine_stops_and_the_next_goes_on() {
    let (before, after) = changes();
    let mut stopped = 0;
    for change in before..after {
        let Setup { disk, sim, made } = {
            let setup = Setup::new();
            setup.disk.fail_from(change, 1, Fault::Broken);
            if let Err(error) = setup.play() {
                stopped += 1;
                let words = error.to_string();
                assert!(words.contains("disk") || words.contains("unknown") || words.contains("stopped"), "{words}");
            }
            setup
        };
        disk.repair();
        let options = sim.options().clone();
        sim.engine().stop();
        drop(sim);
        let store = Arc::new(SqliteStore::open(&disk.path("store.db")).unwrap());
        let setup = Setup { disk, sim: Simulation::over(store, options), made };
        setup.play().unwrap_or_else(|error| panic!("change {change}: the next process stops too: {error}"));
        assert_eq!(setup.status(), Some(Status::Completed), "change {change}");
    }
    assert!(stopped > 0, "the engine stopped where a commit failed");
}
