//! A deploy over a thousand open runs, and a bad one: nothing is lost, nothing fails, and what cannot go on says why.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dacapo::core::{CommandKind, Job, Outcome as Came, Resolution, Transcript};
use dacapo::prelude::*;
use dacapo::{Description, Filter, Handle, PendingActivity, Status};
use dacapo_shop::checkout::{Version, v2};
use dacapo_shop::order::{CANCEL, CONFIRM, Cancel, Confirm, Outcome, Stage};
use dacapo_shop::shop::Shop;
use futures::future::join_all;
use tempfile::TempDir;

/// Orders that are open when the first deploy comes. Every tenth meets the same fate.
const OPEN: usize = 1_000;
/// Orders that are placed under v2, and under v3.
const LATER: usize = 50;
const LAST: usize = 10;

/// How long anything may take before the test gives up on it.
const PATIENCE: Duration = secs(30);

/// What becomes of an order from v1, by the last digit of its number.
mod fate {
    /// The bank does not answer at first: the charge is running when v1 ends.
    pub(super) const SLOW: usize = 0;
    /// The bank refuses at first: the charge is in a retry pause when v1 ends.
    pub(super) const FLAKY: usize = 1;
    /// It ends under v2, which must change nothing for it.
    pub(super) const SHIPPED_BY_V2: usize = 2;
    /// So does this.
    pub(super) const CANCELLED_BY_V2: usize = 3;
    /// A cancellation wakes it under v3: it gets stuck.
    pub(super) const CANCELLED_UNDER_V3: [usize; 2] = [4, 5];
    /// A confirmation wakes it under v3: it gets stuck, and the confirmation is not lost.
    pub(super) const CONFIRMED_UNDER_V3: usize = 6;
}

/// The shop, and a file of orders that one version after the other serves.
struct Story {
    folder: TempDir,
    shop: Arc<Shop>,
    expected: BTreeMap<String, Outcome>,
}

/// One version at work.
struct Act {
    version: Version,
    app: App,
}

impl Story {
    fn begin() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shop = Shop::open(folder.path().join("shop.db").to_str().unwrap()).unwrap();
        shop.stock("violin", 2_000).unwrap();
        Self { folder, shop, expected: BTreeMap::new() }
    }

    fn file(&self) -> String {
        self.folder.path().join("orders.db").to_str().unwrap().to_owned()
    }

    async fn serve(&self, version: Version) -> Act {
        let store = Dacapo::open(&format!("sqlite:{}", self.file())).await.unwrap();
        Act { version, app: version.serve(store, self.shop.clone()).await.unwrap() }
    }

    fn expect(&mut self, id: &str, outcome: Outcome) {
        assert_eq!(self.expected.insert(id.to_owned(), outcome), None, "order {id} ends twice");
    }

    fn expect_shipped(&mut self, id: &str, points: u32) {
        self.expect(id, Outcome::Shipped { parcel: format!("parcel-{id}"), points });
    }

    fn expect_cancelled(&mut self, id: &str) {
        self.expect(id, Outcome::Cancelled { reason: format!("{id} is not wanted") });
    }

    /// What a second process, which only reads, says of stuck orders.
    fn stuck_report(&self) -> String {
        let said = Command::new(env!("CARGO_BIN_EXE_dacapo-shop")).args(["stuck", &self.file()]).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap()
    }
}

impl Act {
    fn run(&self, id: &str) -> Handle<Outcome> {
        self.app.handle_of(id.to_owned())
    }

    async fn place(&self, ids: &[String], card: impl Fn(usize) -> String) {
        let starts = ids.iter().enumerate().map(|(number, id)| {
            let gift = self.version != Version::V1 && number % 2 == 0;
            let (id, sku) = (id.clone(), "violin".to_owned());
            let order = v2::Order { id, sku, quantity: 1, cents: 700, card: card(number), gift };
            async move { self.version.start(&self.app, order, &ids[number]).await.unwrap() }
        });
        join_all(starts).await;
    }

    async fn cancel(&self, ids: &[String]) {
        let signals = ids.iter().map(|id| async move {
            let reason = format!("{id} is not wanted");
            self.run(id).signal(CANCEL, Cancel { reason }).await.unwrap();
        });
        join_all(signals).await;
    }

    async fn confirm(&self, ids: &[String]) {
        let updates = ids.iter().map(|id| async move {
            let answer = self.run(id).update(CONFIRM, Confirm { by: "ada".to_owned() }).await;
            assert_eq!(answer.unwrap_or_else(|error| panic!("{id}: {error}")), "confirmed by ada");
        });
        join_all(updates).await;
    }

    async fn results(&self, ids: &[String]) {
        for id in ids {
            match tokio::time::timeout(PATIENCE, self.run(id).result()).await {
                Ok(result) => drop(result.unwrap_or_else(|error| panic!("{id}: {error}"))),
                Err(_) => panic!("{id} does not end: {:#?}", self.run(id).describe().await),
            }
        }
    }

    /// Looks at each run until it is so.
    async fn until(&self, ids: &[String], is_so: impl Fn(&Description) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        for id in ids {
            loop {
                let run = self.run(id).describe().await.unwrap();
                if is_so(&run) {
                    break;
                }
                assert!(Instant::now() < deadline, "{id} never came to it: {run:#?}");
                tokio::task::yield_now().await;
            }
        }
    }

    async fn until_confirming(&self, ids: &[String]) {
        self.until(ids, |run| stage(run) == Some(Stage::Confirming) && run.pending.is_empty()).await;
    }

    async fn until_stuck(&self, ids: &[String]) {
        self.until(ids, |run| run.stuck.is_some()).await;
    }

    async fn count(&self, filter: Filter) -> u64 {
        self.app.runs().count(&filter).await.unwrap()
    }

    async fn pending_charge(&self, id: &str) -> PendingActivity {
        let pending = self.run(id).describe().await.unwrap().pending;
        assert_eq!(pending.len(), 1, "{pending:?}");
        pending.into_iter().next().unwrap()
    }

    async fn stop(self) {
        self.app.stop().await;
    }
}

fn stage(run: &Description) -> Option<Stage> {
    run.published.as_ref().map(|stage| dacapo::decode(stage).unwrap())
}

fn number(number: usize) -> String {
    format!("o-{number}")
}

/// The orders from v1 that meet one of these fates.
fn fated(fates: &[usize]) -> Vec<String> {
    (0..OPEN).filter(|order| fates.contains(&(order % 10))).map(number).collect()
}

fn placed_under(version: Version, how_many: usize) -> Vec<String> {
    (0..how_many).map(|order| format!("{version}-{order}")).collect()
}

/// S0-60, S4-3, T-27, T-28, C-49: four versions of a checkout serve one file, one after the other. What is open under the
/// first goes on under the second, gets stuck under the third, which is broken, and ends under the fourth.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_open_runs_survive_a_good_deploy_a_bad_one_and_its_repair() {
    let mut story = Story::begin();
    let charges = first_come_a_thousand_orders(&story).await;
    then_a_good_deploy_changes_nothing_for_them(&mut story, &charges).await;
    then_a_bad_deploy_makes_stuck_what_it_wakes(&mut story).await;
    let act = then_the_repair_ends_them_all(&mut story).await;
    assert_all_ended_well(&story, &act).await;
}

/// A caller of `result_or_stuck` was once answered before lists and descriptions showed the run as stuck.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caller_told_that_a_run_is_stuck_finds_it_stuck() {
    let story = Story::begin();
    let ids: Vec<_> = (0..20).map(number).collect();
    let act = story.serve(Version::V2).await;
    act.place(&ids, |_| "visa".to_owned()).await;
    act.until_confirming(&ids).await;
    act.stop().await;

    let act = story.serve(Version::V3).await;
    for (stuck, id) in ids.iter().enumerate() {
        assert_eq!(act.count(Filter::stuck()).await, stuck as u64);
        let refused = act.run(id).inspect().await.unwrap_err().to_string();
        let stuck = act.run(id).describe().await.unwrap().stuck.expect("it is told to be stuck");
        assert_eq!(refused, format!("the run cannot be played now: {}", stuck.reason));
    }
}

/// Gives the ids of the activities that are pending when v1 ends.
async fn first_come_a_thousand_orders(story: &Story) -> BTreeMap<String, String> {
    let act = story.serve(Version::V1).await;
    story.shop.open_bank(false);
    let ids: Vec<_> = (0..OPEN).map(number).collect();
    let card = |order: usize| match order % 10 {
        fate::SLOW => "slow".to_owned(),
        fate::FLAKY => "flaky".to_owned(),
        _ => "visa".to_owned(),
    };
    act.place(&ids, card).await;

    let (slow, flaky) = (fated(&[fate::SLOW]), fated(&[fate::FLAKY]));
    act.until_confirming(&fated(&[2, 3, 4, 5, 6, 7, 8, 9])).await;
    let tried = |run: &Description, is_so: fn(&PendingActivity) -> bool| {
        stage(run) == Some(Stage::Charging) && run.pending.first().is_some_and(is_so)
    };
    act.until(&slow, |run| tried(run, |charge| charge.state == dacapo::ActivityState::Running && charge.attempt == 1))
        .await;
    act.until(&flaky, |run| tried(run, |charge| charge.attempt > 1 && charge.last_failure.is_some())).await;
    assert_eq!(act.count(Filter::open()).await, 1_000);
    let mut charges = BTreeMap::new();
    for id in slow.iter().chain(&flaky) {
        charges.insert(id.clone(), act.pending_charge(id).await.id.to_string());
    }
    act.stop().await;
    charges
}

async fn then_a_good_deploy_changes_nothing_for_them(story: &mut Story, charges: &BTreeMap<String, String>) {
    let act = story.serve(Version::V2).await;
    let new = placed_under(Version::V2, LATER);
    act.place(&new, |order| if order == 0 { "flaky".to_owned() } else { "visa".to_owned() }).await;
    act.until(&new[..1], |run| run.pending.first().is_some_and(|charge| charge.attempt > 1)).await;

    // The bank is still closed. What v1 recorded holds for its orders, v2's own tuning for the new ones.
    for (id, charge) in charges {
        let pending = act.pending_charge(id).await;
        assert_eq!((pending.id.as_str(), pending.attempts), (charge.as_str(), 100), "{id}");
    }
    assert_eq!(act.pending_charge(&new[0]).await.attempts, 8);
    story.shop.open_bank(true);
    act.until_confirming(&fated(&[fate::SLOW, fate::FLAKY])).await;
    act.until_confirming(&new).await;

    let shipped = fated(&[fate::SHIPPED_BY_V2]);
    let cancelled = fated(&[fate::CANCELLED_BY_V2]);
    act.confirm(&shipped).await;
    act.confirm(&new[..LATER / 2]).await;
    act.cancel(&cancelled).await;
    act.results(&shipped).await;
    act.results(&new[..LATER / 2]).await;
    act.results(&cancelled).await;
    shipped.iter().for_each(|id| story.expect_shipped(id, 0));
    new[..LATER / 2].iter().for_each(|id| story.expect_shipped(id, 0));
    cancelled.iter().for_each(|id| story.expect_cancelled(id));
    assert_eq!(act.count(Filter::stuck()).await, 0);

    // Only new orders are screened, and only they can be gifts.
    for (id, screened, wrapped) in [(&shipped[0], 0, 0), (&new[0], 1, 1), (&new[1], 1, 0)] {
        let history = act.run(id).transcript().await.unwrap();
        assert_eq!(scheduled(&history, "Shop::screen"), screened, "{}", history.to_text());
        assert_eq!(scheduled(&history, "Shop::wrap"), wrapped, "{}", history.to_text());
    }
    act.stop().await;
}

async fn then_a_bad_deploy_makes_stuck_what_it_wakes(story: &mut Story) {
    let act = story.serve(Version::V3).await;
    let from_v1 = fated(&fate::CANCELLED_UNDER_V3);
    let from_v2 = placed_under(Version::V2, LATER)[LATER / 2..].to_vec();
    act.cancel(&from_v1).await;
    act.cancel(&from_v2).await;
    let confirmed = fated(&[fate::CONFIRMED_UNDER_V3]);
    let senders: Vec<_> = confirmed.iter().map(|id| tokio::spawn(confirm_in_vain(act.run(id)))).collect();
    act.until_stuck(&from_v1).await;
    act.until_stuck(&from_v2).await;
    act.until_stuck(&confirmed).await;

    // The report is written beside the process that serves.
    let report = story.stuck_report();
    let stuck = from_v1.len() + from_v2.len() + confirmed.len();
    assert!(report.ends_with(&format!("{stuck} stuck\n")), "{report}");
    assert_eq!(report.lines().filter(|line| line.starts_with("order ")).count(), stuck);
    assert_unreadable(block(&report, &from_v1[0]));
    assert_unreadable(block(&report, &confirmed[0]));
    assert_nondeterminism(block(&report, &from_v2[0]));

    // A reset helps as well, with the messages that the order was sent: it is played anew from its first result on.
    let reset = &from_v2[..5];
    for id in reset {
        act.run(id).reset(1, "v3 draws the reference first").await.unwrap();
    }
    act.results(reset).await;

    // Orders that are placed under v3 are fine, until code comes that has never been so.
    let new = placed_under(Version::V3, LAST);
    act.place(&new, |_| "visa".to_owned()).await;
    act.until_confirming(&new).await;
    for status in [Status::Failed, Status::TimedOut, Status::Cancelled] {
        assert_eq!(act.count(Filter::all().status(status)).await, 0, "{status}");
    }
    assert_eq!(act.count(Filter::all().status(Status::Terminated)).await, reset.len() as u64, "those that were reset");
    act.stop().await;
    for sender in senders {
        sender.await.unwrap();
    }
    for id in from_v1.iter().chain(&from_v2) {
        story.expect_cancelled(id);
    }
}

/// A stuck run does not take the update. The update was durable before the caller waited, so it is not lost.
async fn confirm_in_vain(run: Handle<Outcome>) {
    let answer = run.update(CONFIRM, Confirm { by: "ada".to_owned() }).await;
    let waits = answer.unwrap_err().to_string();
    assert!(waits.starts_with("the update is kept until the run can be played again"), "{waits}");
}

async fn then_the_repair_ends_them_all(story: &mut Story) -> Act {
    let act = story.serve(Version::V4).await;
    act.results(&fated(&fate::CANCELLED_UNDER_V3)).await;
    act.results(&fated(&[fate::CONFIRMED_UNDER_V3])).await;
    act.results(&placed_under(Version::V2, LATER)[LATER / 2..]).await;

    // What v3 itself recorded, v4 cannot play: a reset drops it.
    let from_v3 = placed_under(Version::V3, LAST);
    for id in &from_v3 {
        let refused = act.run(id).inspect().await.unwrap_err().to_string();
        assert!(refused.contains("reference") && refused.contains("v4.rs"), "{refused}");
        act.run(id).reset(1, "v3 is gone").await.unwrap();
    }
    act.until_confirming(&from_v3).await;

    let mut waiting = fated(&[fate::SLOW, fate::FLAKY, 7, 8, 9]);
    waiting.extend(from_v3);
    act.confirm(&waiting).await;
    act.results(&waiting).await;
    waiting.extend(fated(&[fate::CONFIRMED_UNDER_V3]));
    waiting.iter().for_each(|id| story.expect_shipped(id, 7));
    act
}

async fn assert_all_ended_well(story: &Story, act: &Act) {
    let all = OPEN + LATER + LAST;
    assert_eq!(story.expected.len(), all);
    let mut cancelled = 0;
    for (id, outcome) in &story.expected {
        assert_eq!(&act.run(id).result().await.unwrap(), outcome, "{id}");
        let history = act.run(id).transcript().await.unwrap();
        assert_eq!((scheduled(&history, "Shop::charge"), charged(&history)), (1, 1), "{id}: {}", history.to_text());
        cancelled += u32::from(matches!(outcome, Outcome::Cancelled { .. }));
    }
    assert_eq!(act.count(Filter::open()).await, 0);
    assert_eq!(act.count(Filter::all().status(Status::Completed)).await, all as u64);
    assert_eq!(act.count(Filter::all()).await, all as u64 + 15, "those that were reset are kept as they were");
    assert_eq!(story.shop.charges(), Ok((all as u32, cancelled)));
    assert_eq!(story.shop.left("violin"), Ok(2_000 - all as u32 + cancelled));
    assert_eq!(story.stuck_report(), "0 stuck\n");
}

/// The lines of the report on this order.
fn block<'r>(report: &'r str, id: &str) -> &'r str {
    let start = report.find(&format!("order {id} is stuck")).unwrap_or_else(|| panic!("{id} is not in {report}"));
    let rest = &report[start..];
    rest[1..].find("\norder ").map_or(rest, |end| &rest[..=end])
}

fn assert_unreadable(block: &str) {
    for told in [
        r#"the result of side effect "reference": the value cannot be read as `u64`"#,
        r#"it is `"SHOP "#,
        "recorded by build shop-v1, the root unit, at examples/shop/src/checkout/v3.rs:",
        "The run stays open; it goes on once the code can read what was recorded.",
    ] {
        assert!(block.contains(told), "{told} is not in:\n{block}");
    }
}

fn assert_nondeterminism(block: &str) {
    for told in [
        "nondeterminism: a command differs from what was recorded",
        "--> turn 1, command 0",
        "recorded: patch screening, the root unit, at examples/shop/src/checkout/v2.rs:",
        ", by build shop-v2",
        "new:      side effect reference #1, side effect(0), the root unit, at examples/shop/src/checkout/v3.rs:",
        "help: the run stays open. Bring back the code that recorded it, keep the call of patch `screening`, which is on record, or begin it again with `reset(1, …)`: that undoes updates",
    ] {
        assert!(block.contains(told), "{told} is not in:\n{block}");
    }
}

/// How many of these activities the run ever asked for.
fn scheduled(history: &Transcript, activity: &str) -> usize {
    let commands = history.turns.iter().flat_map(|turn| &turn.commands);
    commands.filter(|command| matches!(&command.kind, CommandKind::Activity(it) if it.activity == *activity)).count()
}

/// How often the run recorded that its card was charged.
fn charged(history: &Transcript) -> usize {
    let receipt = |job: &&Job| match job {
        Job::Resolve { resolution: Resolution::Activity(Came::Completed(result)), .. } => {
            result.as_text().is_some_and(|text| text.starts_with("\"receipt-"))
        }
        _ => false,
    };
    history.turns.iter().flat_map(|turn| &turn.jobs).filter(receipt).count()
}
