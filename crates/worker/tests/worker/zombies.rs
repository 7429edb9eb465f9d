//! Terminations of a queue: what is counted, said and decided, at which moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dacapo_core::Timestamp;
use dacapo_worker::{
    ActivityInfo, Effects, Entity, Interrupt, ShutdownWait, TerminationId, ZombieLimit, ZombieSettings, Zombies,
};
use expect_test::expect;

use crate::log::logged;

const BEGIN: Timestamp = Timestamp::from_millis(1_000_000);

fn after(millis: u64) -> Timestamp {
    BEGIN.after(Duration::from_millis(millis))
}

/// Code that never stops, and keeps what it was told.
#[derive(Default)]
struct Stubborn(Mutex<Vec<String>>);

impl Stubborn {
    fn told(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Interrupt for Stubborn {
    fn cancel(&self, reason: &str) {
        self.0.lock().unwrap().push(format!("cancel: {reason}"));
    }

    fn interrupt(&self) {
        self.0.lock().unwrap().push("interrupt".to_owned());
    }

    fn place(&self) -> String {
        "deep in a loop".to_owned()
    }
}

fn entity(number: usize) -> Entity {
    Entity::activity(&ActivityInfo {
        activity: "resize".into(),
        activity_id: format!("a{number}").into(),
        workflow_id: "album".into(),
        run_id: "run".into(),
        queue: "photos".into(),
        ..ActivityInfo::default()
    })
}

fn request(zombies: &mut Zombies, number: usize, now: Timestamp) -> (TerminationId, Arc<Stubborn>) {
    let code = Arc::<Stubborn>::default();
    let (id, effects) = zombies.request(entity(number), code.clone(), "too slow", now);
    assert_eq!(effects.perform(), ZombieLimit::Kept);
    (id, code)
}

fn with_max(max_count: usize) -> Zombies {
    Zombies::new(ZombieSettings { max_count, ..ZombieSettings::default() })
}

/// S3-19, S3-25, S3-31, C-21: cancelled first, so that it can clean up, and interrupted at once; then only interrupted.
#[test]
fn code_is_cancelled_and_interrupted_at_once_and_then_interrupted_again() {
    let mut zombies = with_max(10);
    let (_, code) = request(&mut zombies, 1, BEGIN);
    assert_eq!(code.told(), ["cancel: too slow", "interrupt"]);
    assert_eq!(zombies.next(), Some(after(1_000)));
    for millis in [999, 1_000, 1_001, 2_000, 4_000, 8_000, 10_000] {
        assert_eq!(zombies.tick(after(millis)).perform(), ZombieLimit::Kept);
    }
    assert_eq!(code.told()[2..], ["interrupt"; 4]);
}

/// S3-22, S3-29, S3-32, C-21: the gauge at 0, 1, 9.999, 10 and 3,600 s, and after its end.
#[test]
fn a_zombie_counts_from_the_grace_period_to_its_end() {
    let mut zombies = with_max(10);
    let (id, _) = request(&mut zombies, 1, BEGIN);
    let mut count_at = |millis| {
        let _ = zombies.tick(after(millis)).perform();
        (zombies.count(), zombies.health().leaked, zombies.health().terminating)
    };
    assert_eq!([0, 1_000, 9_999].map(&mut count_at), [(0, 0, 1); 3]);
    assert_eq!([10_000, 3_599_999].map(&mut count_at), [(1, 0, 0); 2]);
    assert_eq!([3_600_000, 9_000_000].map(&mut count_at), [(1, 1, 0); 2]);
    assert_eq!(zombies.next(), None);
    let _ = zombies.finished(id, after(9_000_000)).perform();
    assert_eq!((zombies.count(), zombies.health()), (0, Default::default()));
    let _ = zombies.finished(id, after(9_000_000)).perform();
    assert_eq!(zombies.count(), 0, "an end that is told twice counts once");
}

/// S3-24, S3-28: nothing is said before the grace period ends; then once, with all that is known.
#[test]
fn a_zombie_is_reported_once_with_id_type_queue_count_and_place() {
    let mut zombies = with_max(10);
    let (id, _) = request(&mut zombies, 1, BEGIN);
    let mut said_at = |millis| logged(|| assert_eq!(zombies.tick(after(millis)).perform(), ZombieLimit::Kept));
    assert_eq!([1_000, 9_999].map(&mut said_at), ["", ""]);
    expect![[r#"
        ERROR kind=activity id="album/run/a1" type_name="resize" queue="photos" zombies=1 place="deep in a loop" seconds=10.0 message=a zombie: it was asked to stop and runs on; its thread cannot be had back before it returns
    "#]]
    .assert_eq(&said_at(10_000));
    assert_eq!([16_000, 3_599_999].map(&mut said_at), ["", ""]);
    expect![[r#"
        ERROR kind=activity id="album/run/a1" type_name="resize" queue="photos" zombies=1 place="deep in a loop" seconds=3600.0 message=a zombie has leaked: it is asked to stop no more, and counts until it returns
    "#]]
    .assert_eq(&said_at(3_600_000));
    assert_eq!(said_at(9_000_000), "");
    let ended = logged(|| assert_eq!(zombies.finished(id, after(9_000_000)).perform(), ZombieLimit::Kept));
    expect![[r#"
        WARN kind=activity id="album/run/a1" type_name="resize" queue="photos" zombies=0 place="deep in a loop" seconds=9000.0 message=a zombie has ended after all and counts no more
    "#]]
    .assert_eq(&ended);
}

/// S3-26: code that stops soon is done, and nothing is said.
#[test]
fn code_that_stops_in_time_leaves_no_trace() {
    let mut zombies = with_max(1);
    let said = logged(|| {
        let (id, _) = request(&mut zombies, 1, BEGIN);
        assert_eq!(zombies.finished(id, after(100)).perform(), ZombieLimit::Kept);
        assert_eq!(zombies.tick(after(100_000)).perform(), ZombieLimit::Kept);
    });
    assert_eq!((said.as_str(), zombies.count(), zombies.next()), ("", 0, None));
}

/// S3-24: health data for people.
#[test]
fn health_lists_all_code_that_does_not_stop() {
    let mut zombies = with_max(10);
    let _ = (request(&mut zombies, 1, BEGIN), request(&mut zombies, 2, after(5_000)));
    let _ = zombies.tick(after(10_000)).perform();
    let health = zombies.health();
    assert_eq!((health.zombies, health.leaked, health.terminating, health.entities.len()), (1, 0, 1, 2));
    expect![[r#"
        1 zombies (0 leaked), 1 terminating
        Zombie since 1970-01-01T00:16:40Z: activity album/run/a1 (resize) of queue "photos", interrupted 2 times, deep in a loop
        Terminating since 1970-01-01T00:16:45Z: activity album/run/a2 (resize) of queue "photos", interrupted 2 times, deep in a loop"#]]
    .assert_eq(&health.to_string());
}

/// What a queue says when zombies come one after the other, a second apart.
fn limits(zombies: &mut Zombies, number: usize) -> Vec<ZombieLimit> {
    let mut limits = Vec::new();
    for number in 0..number as u64 {
        request(zombies, number as usize, after(number * 1_000));
    }
    for number in 0..number as u64 {
        limits.push(zombies.tick(after(10_000 + number * 1_000)).perform());
    }
    limits
}

/// S3-34, S3-49, C-21: nine zombies are borne, the tenth is one too many, and the eleventh changes nothing.
#[test]
fn the_tenth_zombie_shuts_the_application_down() {
    let mut zombies = Zombies::new(ZombieSettings::default());
    let limits = limits(&mut zombies, 11);
    assert_eq!(limits[..9], [ZombieLimit::Kept; 9]);
    assert_eq!(limits[9..], [ZombieLimit::Reached, ZombieLimit::Kept]);
    assert_eq!(zombies.count(), 11);
}

/// S3-34: a tick that finds many at once says so once, and so does a count that falls and rises again.
#[test]
fn a_shutdown_is_asked_for_once() {
    let mut zombies = with_max(3);
    let ids: Vec<TerminationId> = (0..5).map(|number| request(&mut zombies, number, BEGIN).0).collect();
    assert_eq!(zombies.tick(after(10_000)).perform(), ZombieLimit::Reached);
    for id in ids {
        assert_eq!(zombies.finished(id, after(11_000)).perform(), ZombieLimit::Kept);
    }
    assert_eq!(zombies.count(), 0);
    let _ = (0..5).map(|number| request(&mut zombies, number, after(20_000))).count();
    assert_eq!((zombies.tick(after(40_000)).perform(), zombies.count()), (ZombieLimit::Kept, 5));
}

/// S3-34: also when many threads request, tick and finish at the same time.
#[test]
fn a_shutdown_is_asked_for_once_however_many_call() {
    for _ in 0..20 {
        let zombies = Mutex::new(with_max(10));
        let perform = |decide: &dyn Fn(&mut Zombies) -> Effects| {
            let effects = decide(&mut zombies.lock().unwrap());
            effects.perform()
        };
        let caller = |thread: usize| {
            let mut shut_downs = 0;
            for number in 0..8 {
                let id = Mutex::new(None);
                let _ = perform(&|zombies| {
                    let code = Arc::<Stubborn>::default();
                    let (new, effects) = zombies.request(entity(thread * 8 + number), code, "too slow", BEGIN);
                    *id.lock().unwrap() = Some(new);
                    effects
                });
                let limit = perform(&|zombies| zombies.tick(after(10_000)));
                shut_downs += usize::from(limit == ZombieLimit::Reached);
                if number % 4 == 3 {
                    let id = id.lock().unwrap().take().unwrap();
                    assert_eq!(perform(&|zombies| zombies.finished(id, after(10_000))), ZombieLimit::Kept);
                }
            }
            shut_downs
        };
        let shut_downs: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || caller(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((shut_downs, zombies.lock().unwrap().count()), (1, 48));
    }
}

/// S3-38: with 0, twenty zombies are counted and nothing else.
#[test]
fn a_limit_of_zero_never_shuts_down() {
    let mut zombies = with_max(0);
    assert_eq!(limits(&mut zombies, 20), [ZombieLimit::Kept; 20]);
    assert_eq!(zombies.count(), 20);
}

/// S3-40: two queues of one process, each by its own settings.
#[test]
fn queues_have_settings_of_their_own() {
    let hasty = ZombieSettings { max_count: 1, grace_period: Duration::from_secs(3), ..ZombieSettings::default() };
    let (mut hasty, mut calm) = (Zombies::new(hasty), with_max(10));
    let _ = (request(&mut hasty, 1, BEGIN), request(&mut calm, 1, BEGIN));
    assert_eq!(hasty.tick(after(3_000)).perform(), ZombieLimit::Reached);
    assert_eq!(calm.tick(after(3_000)).perform(), ZombieLimit::Kept);
    assert_eq!((hasty.count(), calm.count()), (1, 0));
}

/// S3-54: a shutdown waits for terminations, 30 s and no longer, and then knows what is left.
#[test]
fn a_shutdown_waits_so_long_and_no_longer() {
    let mut zombies = with_max(10);
    assert_eq!(zombies.wait(BEGIN, BEGIN), ShutdownWait::Over);
    let (id, _) = request(&mut zombies, 1, BEGIN);
    let began = after(5_000);
    assert_eq!(zombies.wait(began, began), ShutdownWait::Until(after(35_000)));
    let _ = zombies.tick(after(34_999)).perform();
    assert_eq!(zombies.wait(began, after(34_999)), ShutdownWait::Until(after(35_000)));
    assert_eq!(zombies.wait(began, after(35_000)), ShutdownWait::TooLong(zombies.health()));
    assert_eq!(zombies.health().zombies, 1);
    let _ = zombies.finished(id, after(36_000)).perform();
    assert_eq!(zombies.wait(began, after(36_000)), ShutdownWait::Over);
}

/// S3-33: ten thousand terminations over a day, each of which ends some time: what is counted is always what is there, and
/// in the end there is nothing.
#[test]
fn a_day_of_terminations_ends_with_no_zombie() {
    let mut zombies = with_max(0);
    let mut seed = 7_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    // By its end: the termination and when it began.
    let mut ends: BTreeMap<(u64, TerminationId), u64> = BTreeMap::new();
    let mut now = 0;
    for number in 0..10_000 {
        now += random(17_000);
        while let Some(first) = ends.first_entry().filter(|first| first.key().0 <= now) {
            let ((at, id), _) = first.remove_entry();
            let _ = zombies.tick(after(at)).perform();
            let _ = zombies.finished(id, after(at)).perform();
        }
        let _ = zombies.tick(after(now)).perform();
        let expected = ends.values().filter(|began| now - **began >= 10_000).count();
        assert_eq!(zombies.count(), expected, "at {now} ms");
        let (id, _) = request(&mut zombies, number, after(now));
        let longest = if random(100) == 0 { 5_000_000 } else { 12_000 };
        ends.insert((now + 1 + random(longest), id), now);
    }
    for ((at, id), _) in ends {
        let _ = zombies.tick(after(at)).perform();
        let _ = zombies.finished(id, after(at)).perform();
    }
    assert_eq!((zombies.count(), zombies.next(), zombies.health()), (0, None, Default::default()));
}
