//! Every example, played once for every moment at which its process can die.
//!
//! Each sweep also checks, after every play, that each result is recorded once and that no attempt was made again but
//! those that had run, unrecorded, when the process died.

use std::sync::Arc;

use dacapo::prelude::*;
use dacapo::{ActivityFn, ActivityType, WorkflowDef, WorkflowFn, WorkflowType};
use dacapo_core::{CommandKind, PolicySpec};
use dacapo_examples::approval::{DECIDE, Decision, Request, WAITS_FOR, approval, send_email};
use dacapo_examples::entity::Account;
use dacapo_examples::fan_out::{Work, count, count_all};
use dacapo_examples::journey::{collect_ticket, find_train, hold_seat, journey, pay};
use dacapo_examples::saga::{Booking, Trip, book, give_back, trip};
use dacapo_faults::Disk;
use dacapo_sqlite::SqliteStore;
use dacapo_testkit::{Kit, Sweep, Swept};
use dacapo_worker::Activity;
use tempfile::TempDir;

/// Plays a story for every crash, in memory, and prints the counts.
fn sweep(story: impl FnMut(&mut Kit)) -> Swept {
    shown(Sweep::new(Kit::new).play(story))
}

fn shown(swept: Swept) -> Swept {
    let Swept { moments, crashes, plays, lost } = swept;
    println!("{moments} moments, {plays} plays, {crashes} crashes, {lost} attempts lost");
    swept
}

/// A kit over a file of its own, which every process opens anew.
fn on_a_file() -> Kit {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db").to_str().unwrap().to_owned();
    let keep: Arc<TempDir> = Arc::new(folder);
    Kit::new().over(move || {
        let _keep = &keep;
        Arc::new(SqliteStore::open(&path).unwrap())
    })
}

/// A kit over a disk that loses its power whenever a process dies: what was not flushed is gone, or there in part.
fn on_a_disk_that_forgets(luck: u64) -> impl Fn() -> Kit {
    move || {
        let disk = Disk::new();
        Kit::new().over(move || {
            disk.cut();
            disk.restore(luck);
            Arc::new(SqliteStore::open(&disk.path("store.db")).unwrap())
        })
    }
}

/// Plays a story for every crash on disks that forget, each with another luck.
fn sweep_without_power(mut story: impl FnMut(&mut Kit)) {
    for luck in [0, 7, 4_711] {
        let swept = shown(Sweep::new(on_a_disk_that_forgets(luck)).play(&mut story));
        assert_eq!(swept.crashes, swept.moments);
    }
}

fn to_venice(kit: &mut Kit) {
    let booked = kit.fake(book, |booking| match booking.what.as_str() {
        "car" => Err(Failure::application("there are no cars in Venezia").non_retryable()),
        what => Ok(format!("{what} booked")),
    });
    let given_back = kit.fake(give_back, |_| Ok(()));
    let failure = kit.run(trip, Trip { traveller: "ada".into(), city: "Venezia".into() }).unwrap_err();
    assert_eq!(failure.cause().unwrap().message, "there are no cars in Venezia");
    assert_eq!(once(booked.calls()), ["flight-ada", "hotel-ada", "car-ada"]);
    assert_eq!(once(given_back.calls()), ["car-ada", "hotel-ada", "flight-ada"]);
}

/// The bookings in their order, without those that were tried again at once.
fn once(calls: Vec<Booking>) -> Vec<String> {
    let mut ids: Vec<String> = calls.into_iter().map(|booking| booking.id).collect();
    ids.dedup();
    ids
}

/// S2-16
#[test]
fn a_saga_is_undone_in_reverse_order_wherever_it_crashes() {
    let swept = sweep(to_venice);
    assert_eq!(swept.crashes, swept.moments);
}

/// S2-16
#[test]
fn a_saga_is_undone_in_reverse_order_wherever_it_crashes_on_a_file() {
    let swept = shown(Sweep::new(on_a_file).play(to_venice));
    assert_eq!(swept.crashes, swept.moments);
}

/// S2-16
#[test]
fn a_saga_is_undone_in_reverse_order_wherever_it_crashes_twice() {
    let swept = shown(Sweep::new(Kit::new).again_at_every(1).play(to_venice));
    assert_eq!(swept.crashes, swept.moments + 2 * (swept.plays - 1 - swept.moments));
}

/// S2-16
#[test]
fn a_cancelled_saga_is_undone_wherever_it_crashes() {
    let swept = sweep(|kit| {
        let booked = kit.fake(book, |booking| match booking.what.as_str() {
            // It is tried again after a pause, in which the traveller cancels the trip.
            "hotel" => Err("the hotel does not answer".into()),
            what => Ok(format!("{what} booked")),
        });
        let given_back = kit.fake(give_back, |_| Ok(()));
        let run = kit.start(trip, Trip { traveller: "ada".into(), city: "Praha".into() });
        kit.cancel(&run, "too hot").unwrap();
        assert!(kit.result(&run).unwrap_err().is_cancelled());
        assert_eq!(once(booked.calls()), ["flight-ada", "hotel-ada"]);
        assert_eq!(once(given_back.calls()), ["hotel-ada", "flight-ada"]);
    });
    assert_eq!(swept.crashes, swept.moments);
}

fn request() -> Request {
    Request { what: "a chair".into(), manager: "mona".into(), director: "dora".into(), patience: days(2) }
}

fn decided_by_the_director(kit: &mut Kit) {
    let email = kit.fake(send_email, |_| Ok(()));
    let run = kit.start(approval, request());
    kit.advance(days(7));
    assert_eq!(kit.query(&run, WAITS_FOR, ()).unwrap(), "dora");
    let yes = Decision { by: "dora".into(), approved: true };
    assert_eq!(kit.update(&run, DECIDE, yes.clone()).unwrap(), "thank you, dora");
    assert_eq!(kit.result(&run), Ok(yes));
    let mut sent: Vec<(String, String)> = email.calls();
    sent.dedup();
    let sent: Vec<String> = sent.into_iter().map(|(to, text)| format!("{to}: {text}")).collect();
    // The two reminders to the same person differ from each other in nothing but time.
    let expected = ["mona: please decide on a chair", "mona: do not forget a chair", "dora: please decide on a chair"];
    assert_eq!(sent, expected);
}

/// S2-16
#[test]
fn a_decision_counts_once_wherever_the_approval_crashes() {
    let swept = sweep(decided_by_the_director);
    assert_eq!(swept.crashes, swept.moments);
}

fn decided_by_the_timeout(kit: &mut Kit) {
    let email = kit.fake(send_email, |_| Ok(()));
    kit.serve(approval);
    let begun = kit.now();
    let refused = Decision { by: "timeout".into(), approved: false };
    assert_eq!(kit.run(approval, request()), Ok(refused));
    assert_eq!(kit.now().since(begun), days(12));
    assert!(matches!(email.count(), 6 | 7), "{} emails", email.count());
}

/// S2-16
#[test]
fn request_without_a_decision_is_refused_at_its_timeout_wherever_it_crashes() {
    let swept = sweep(decided_by_the_timeout);
    assert_eq!(swept.crashes, swept.moments);
}

/// The activity itself, without its pause: it fails on some first attempts.
fn count_at_once() -> Activity {
    fn name<F: ActivityFn<P>, P>(_: F) -> &'static str {
        F::Activity::NAME
    }
    Activity::blocking(name(count), |ctx, input| {
        let part: u64 = dacapo::decode(&input[0])?;
        match part % 7 == 3 && ctx.info().attempt == 1 {
            true => Err("the disk was busy".into()),
            false => dacapo::encode(&part),
        }
    })
}

fn twelve_parts(kit: &mut Kit) {
    kit.serve(count_at_once());
    let run = kit.start(count_all, Work { parts: 12, at_once: 4 });
    assert_eq!(kit.result(&run), Ok(66));
    let history = kit.history(&run);
    let asked = history.turns.iter().flat_map(|turn| &turn.commands);
    assert_eq!(asked.filter(|command| matches!(command.kind, CommandKind::Activity(_))).count(), 12);
}

/// S2-16
#[test]
fn a_fan_out_counts_every_part_once_wherever_it_crashes() {
    let swept = sweep(twelve_parts);
    assert_eq!(swept.crashes, swept.moments);
}

/// S2-16
#[test]
fn a_fan_out_counts_every_part_once_wherever_it_crashes_on_a_file() {
    let swept = shown(Sweep::new(on_a_file).play(twelve_parts));
    assert_eq!(swept.crashes, swept.moments);
}

/// The order of units is drawn, and what was drawn is stored with its turn: the sweep checks that all that a dead process
/// left is there in the end as it left it.
///
/// S1-73
#[test]
fn order_of_units_that_a_random_policy_picked_is_kept_wherever_the_process_crashes() {
    fn drawn<F: WorkflowFn<P>, P>(_: F, seed: u64) -> WorkflowDef {
        let mut definition = F::Workflow::definition();
        definition.pins.policy = PolicySpec::Random { seed };
        definition
    }
    for seed in 1..=3 {
        let swept = sweep(|kit| {
            kit.serve(drawn(count_all, seed));
            twelve_parts(kit);
            assert!(kit.histories()[0].1.turns.iter().any(|turn| turn.choices.is_some()));
        });
        assert_eq!(swept.crashes, swept.moments);
    }
}

fn life_of_an_account(kit: &mut Kit) {
    let account = kit.start(Account::run, Account::default());
    for cents in 1..=8 {
        kit.signal(&account, Account::DEPOSIT, cents * 10).unwrap();
    }
    assert_eq!(kit.query(&account, Account::BALANCE, ()).unwrap(), 360);
    assert_eq!(kit.update(&account, Account::WITHDRAW, 60).unwrap(), 300);
    let refused = kit.update(&account, Account::WITHDRAW, 301).unwrap_err().to_string();
    assert!(refused.contains("there are 300 cents, not 301"), "{refused}");
    for cents in 1..=3 {
        kit.signal(&account, Account::DEPOSIT, cents).unwrap();
    }
    kit.signal(&account, Account::CLOSE, ()).unwrap();
    assert_eq!(kit.result(&account), Ok(306));
    assert_eq!(kit.histories().len(), 3);
}

/// S2-16
#[test]
fn an_account_loses_no_move_wherever_it_crashes() {
    let swept = sweep(life_of_an_account);
    assert_eq!(swept.crashes, swept.moments);
}

/// S2-16
#[test]
fn an_account_loses_no_move_wherever_it_crashes_on_a_file() {
    let swept = shown(Sweep::new(on_a_file).play(life_of_an_account));
    assert_eq!(swept.crashes, swept.moments);
}

/// S2-16
#[test]
fn an_account_loses_no_move_wherever_it_crashes_twice() {
    let swept = shown(Sweep::new(Kit::new).again_at_every(5).play(life_of_an_account));
    assert_eq!(swept.crashes, swept.moments + 2 * (swept.plays - 1 - swept.moments));
}

fn to_paris(kit: &mut Kit) {
    let found = kit.fake(find_train, |(_, leg)| Ok(format!("train {leg}")));
    let held = kit.fake(hold_seat, |_| Ok(1_000));
    let paid = kit.fake(pay, |(step, cents)| Ok(format!("{cents} at step {} of {}", step.number, step.of)));
    let collected = kit.fake(collect_ticket, |(_, train)| Ok(format!("ticket for {train}")));
    let stations = ["Lisboa", "Madrid", "Paris"].map(String::from).to_vec();
    let result = kit.run(journey, stations);
    assert_eq!(result.unwrap(), "Lisboa - Madrid - Paris, 2 trains, 2000 at step 5 of 7");
    let made = found.count() + held.count() + paid.count() + collected.count();
    assert!(matches!(made, 7 | 8), "{made} attempts");
}

/// S2-16
#[test]
fn a_journey_goes_on_where_it_stopped_wherever_it_crashes() {
    let swept = sweep(to_paris);
    assert_eq!(swept.crashes, swept.moments);
}

#[test]
fn a_saga_is_undone_in_reverse_order_wherever_the_power_fails() {
    sweep_without_power(to_venice);
}

#[test]
fn a_fan_out_counts_every_part_once_wherever_the_power_fails() {
    sweep_without_power(twelve_parts);
}

#[test]
fn an_account_loses_no_move_wherever_the_power_fails() {
    sweep_without_power(life_of_an_account);
}

#[test]
fn a_decision_counts_once_wherever_the_power_fails() {
    sweep_without_power(decided_by_the_director);
}

#[test]
fn a_journey_goes_on_where_it_stopped_wherever_the_power_fails() {
    sweep_without_power(to_paris);
}
