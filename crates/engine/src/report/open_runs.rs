//! How many runs of each workflow are open. They are counted once, page by page and in the background; from then on
//! committed writes change the number.
//!
//! A page that is read beside the commits may show a write that was not called back yet, or lack one whose callback
//! comes later. So the runs that callbacks name meanwhile are noted, and a page is counted when all writes that were
//! submitted before it was read have been called back: what it shows and what was noted then agree on each run.

use std::collections::BTreeMap;
use std::time::Duration;

use dacapo_core::Name;
use dacapo_store::{RunNo, Shard, Shards};
use dacapo_worker::{Level, meter};

use crate::host::Steady;

/// The shortest time from one count to the next where other nodes start and close runs as well.
pub(crate) const RECOUNT: Duration = Duration::from_secs(60);
/// How many times as long as a count takes no other one begins.
const REST: u32 = 100;

/// The numbers of open runs, by workflow.
type Counts = BTreeMap<Name, i64>;

/// The numbers of open runs in the shards of this process.
pub(crate) struct OpenRuns {
    gauges: BTreeMap<Name, Gauge>,
    /// The shards whose runs are counted.
    counted: BTreeMap<Shard, Counts>,
    /// The shards whose runs are to be counted next.
    wanted: Shards,
    counting: Option<Counting>,
    /// The number of submitted writes that were not called back, by generation.
    in_flight: [usize; 2],
    generation: Generation,
    recount_at: Steady,
}

/// The gauge of a workflow, and the sum of all shards. A run may be called closed before it is called started.
struct Gauge {
    level: Level,
    sum: i64,
}

/// The generation of a write. A page may show the writes of the generation that ends when it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Generation(bool);

/// A change of the number of open runs by a committed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Opened,
    Closed,
}

/// A count that goes on.
struct Counting {
    shards: Shards,
    began: Steady,
    /// The runs up to this one are counted.
    after: Option<RunNo>,
    counts: BTreeMap<Shard, Counts>,
    /// Runs above that one that were started or closed meanwhile, and whether they are open.
    noted: BTreeMap<RunNo, (Name, bool)>,
    page: Option<Page>,
}

/// A page of open runs that waits for writes of its generation.
struct Page {
    rows: Vec<(RunNo, Name)>,
    is_last: bool,
    generation: Generation,
}

impl OpenRuns {
    pub(crate) fn new<'a>(workflows: impl Iterator<Item = &'a Name>) -> Self {
        Self {
            gauges: workflows.map(|name| (name.clone(), Gauge::new(name))).collect(),
            counted: BTreeMap::new(),
            wanted: Shards::default(),
            counting: None,
            in_flight: [0; 2],
            generation: Generation::default(),
            recount_at: Steady::default(),
        }
    }

    /// Notes that a write is submitted. Returns its generation.
    pub(crate) fn write_begins(&mut self) -> Generation {
        self.in_flight[usize::from(self.generation.0)] += 1;
        self.generation
    }

    /// Notes that a write of this generation was called back, after its changes. Returns whether a page can be counted.
    pub(crate) fn write_ends(&mut self, generation: Generation) -> bool {
        self.in_flight[usize::from(generation.0)] -= 1;
        generation != self.generation && self.can_count_page()
    }

    /// Counts a run that a write of this generation has opened or closed. Workflows without a gauge are not counted.
    pub(crate) fn change(&mut self, run: RunNo, workflow: &Name, change: Change, generation: Generation) {
        let Some(gauge) = self.gauges.get_mut(workflow) else { return };
        if let Some(counts) = self.counted.get_mut(&run.shard()) {
            *counts.entry(workflow.clone()).or_default() += change.amount();
            gauge.set(gauge.sum + change.amount());
        }
        if let Some(counting) = self.counting.as_mut().filter(|counting| counting.shards.has_run(run)) {
            counting.change(run, workflow, change, generation);
        }
    }

    /// Wants the runs of these shards to be counted. Returns whether to read the first page now.
    pub(crate) fn want(&mut self, shards: &Shards, now: Steady) -> bool {
        shards.iter().for_each(|shard| self.wanted.insert(shard));
        self.begin(now)
    }

    /// Wants all runs to be counted anew if the last count is old enough, because other nodes start and close runs as
    /// well. Returns whether to read the first page now.
    pub(crate) fn want_again(&mut self, now: Steady) -> bool {
        if self.counting.is_none() && now >= self.recount_at {
            self.counted.keys().for_each(|shard| self.wanted.insert(*shard));
        }
        self.begin(now)
    }

    fn begin(&mut self, now: Steady) -> bool {
        if self.counting.is_some() || self.wanted.is_empty() {
            return false;
        }
        self.counting = Some(Counting::of(std::mem::take(&mut self.wanted), now));
        true
    }

    /// No longer counts runs of these shards, which another node owns.
    pub(crate) fn lose(&mut self, is_lost: impl Fn(Shard) -> bool) {
        let lost = |shards: &Shards| shards.iter().filter(|shard| is_lost(*shard)).collect::<Vec<_>>();
        lost(&self.wanted).into_iter().for_each(|shard| self.wanted.remove(shard));
        if let Some(counting) = &mut self.counting {
            lost(&counting.shards).into_iter().for_each(|shard| counting.shards.remove(shard));
        }
        self.counted.retain(|shard, _| !is_lost(*shard));
        self.show_all();
    }

    /// Returns after which run the next page begins. None: no page is to be read.
    pub(crate) fn next_page(&self) -> Option<Option<RunNo>> {
        self.counting.as_ref().filter(|counting| counting.page.is_none()).map(|counting| counting.after)
    }

    /// Takes a page of open runs. Returns whether it can be counted at once.
    pub(crate) fn page_read(&mut self, rows: Vec<(RunNo, Name)>, is_last: bool) -> bool {
        let Some(counting) = &mut self.counting else { return false };
        counting.page = Some(Page { rows, is_last, generation: self.generation });
        self.generation = Generation(!self.generation.0);
        self.can_count_page()
    }

    fn can_count_page(&self) -> bool {
        let page = self.counting.as_ref().and_then(|counting| counting.page.as_ref());
        page.is_some_and(|page| self.in_flight[usize::from(page.generation.0)] == 0)
    }

    /// Counts the page that was read. Returns whether to read another one.
    pub(crate) fn count_page(&mut self, now: Steady) -> bool {
        if !self.can_count_page() {
            return false;
        }
        let Some(counting) = &mut self.counting else { return false };
        if !counting.count_page(&self.gauges) {
            return true;
        }
        if let Some(Counting { shards, began, mut counts, .. }) = self.counting.take() {
            self.counted.extend(shards.iter().map(|shard| (shard, counts.remove(&shard).unwrap_or_default())));
            self.recount_at = now.after(now.since(began).saturating_mul(REST).max(RECOUNT));
            self.show_all();
        }
        self.begin(now)
    }

    /// Gives the count up that goes on, because the store cannot be read. Its shards wait for the next one.
    pub(crate) fn give_up(&mut self) {
        if let Some(counting) = self.counting.take() {
            counting.shards.iter().for_each(|shard| self.wanted.insert(shard));
        }
    }

    fn show_all(&mut self) {
        for (workflow, gauge) in &mut self.gauges {
            gauge.set(self.counted.values().filter_map(|counts| counts.get(workflow)).sum());
        }
    }
}

impl Gauge {
    fn new(workflow: &str) -> Self {
        Self { level: meter::RUNS_OPEN.level(&[workflow]), sum: 0 }
    }

    fn set(&mut self, sum: i64) {
        self.sum = sum;
        self.level.set(usize::try_from(sum).unwrap_or(0));
    }
}

impl Change {
    const fn amount(self) -> i64 {
        match self {
            Self::Opened => 1,
            Self::Closed => -1,
        }
    }
}

impl Counting {
    fn of(shards: Shards, began: Steady) -> Self {
        Self { shards, began, after: None, counts: BTreeMap::new(), noted: BTreeMap::new(), page: None }
    }

    fn change(&mut self, run: RunNo, workflow: &Name, change: Change, generation: Generation) {
        // The last page shows nothing of a write that was submitted after it was read, and no other page comes.
        let is_after_all = |page: &Page| page.is_last && page.generation != generation;
        if Some(run) <= self.after || self.page.as_ref().is_some_and(is_after_all) {
            return self.add(run, workflow, change.amount());
        }
        let is_open = change == Change::Opened;
        // A run that was called closed stays so, although its start may be called back later.
        let noted = self.noted.entry(run).or_insert_with(|| (workflow.clone(), is_open));
        noted.1 &= is_open;
    }

    fn add(&mut self, run: RunNo, workflow: &Name, amount: i64) {
        *self.counts.entry(run.shard()).or_default().entry(workflow.clone()).or_default() += amount;
    }

    /// Counts the page. Returns whether it was the last.
    fn count_page(&mut self, gauges: &BTreeMap<Name, Gauge>) -> bool {
        let Some(Page { rows, is_last, .. }) = self.page.take() else { return false };
        let until = if is_last { Some(RunNo(i64::MAX)) } else { rows.last().map(|(run, _)| *run) };
        for (run, workflow) in &rows {
            if gauges.contains_key(workflow) && !self.noted.contains_key(run) {
                self.add(*run, workflow, 1);
            }
        }
        for (run, (workflow, is_open)) in std::mem::take(&mut self.noted) {
            if Some(run) > until {
                self.noted.insert(run, (workflow, is_open));
            } else if is_open {
                self.add(run, &workflow, 1);
            }
        }
        self.after = until;
        is_last
    }
}

#[cfg(test)]
mod tests {
    use dacapo_core::Timestamp;

    use super::*;

    const MINUTE: Steady = Steady(Timestamp(60_000_000_000));

    fn new() -> OpenRuns {
        OpenRuns::new([Name::from("w")].iter())
    }

    fn shards(all: &[u16]) -> Shards {
        all.iter().copied().map(Shard).collect()
    }

    /// The run of this sequence number in shard 0.
    fn run(sequence: i64) -> RunNo {
        RunNo::new(sequence, Shard(0))
    }

    fn page(runs: &[i64]) -> Vec<(RunNo, Name)> {
        runs.iter().map(|sequence| (run(*sequence), "w".into())).collect()
    }

    fn shown(open: &OpenRuns) -> i64 {
        open.gauges["w"].sum
    }

    /// A write that is submitted, committed and called back at once.
    fn written(open: &mut OpenRuns, run: RunNo, change: Change) {
        let write = open.write_begins();
        called_back(open, run, change, write);
    }

    fn called_back(open: &mut OpenRuns, run: RunNo, change: Change, write: Generation) -> bool {
        open.change(run, &"w".into(), change, write);
        open.write_ends(write)
    }

    /// Reads and counts the last page, for which no write has to be waited for.
    fn count_last(open: &mut OpenRuns, runs: &[i64]) {
        assert!(open.page_read(page(runs), true));
        assert!(!open.count_page(MINUTE));
    }

    #[test]
    fn open_runs_are_counted_page_by_page_and_then_with_each_write() {
        let mut open = new();
        written(&mut open, run(1), Change::Opened);
        assert!(open.want(&shards(&[0]), MINUTE));
        assert_eq!((open.next_page(), shown(&open)), (Some(None), 0));
        assert!(open.page_read([page(&[1, 2]), vec![(run(3), "other".into())]].concat(), false));
        assert!(open.count_page(MINUTE));
        assert_eq!((open.next_page(), shown(&open)), (Some(Some(run(3))), 0), "shown when all pages are counted");
        count_last(&mut open, &[4]);
        assert_eq!((open.next_page(), shown(&open)), (None, 3));
        written(&mut open, run(5), Change::Opened);
        written(&mut open, run(2), Change::Closed);
        written(&mut open, run(4), Change::Closed);
        assert_eq!(shown(&open), 2);
    }

    /// Between the pages of one count: a run that is on neither page, and one that was counted and closes then.
    #[test]
    fn run_that_starts_or_closes_while_pages_are_read_is_counted_once() {
        let mut open = new();
        open.want(&shards(&[0]), MINUTE);
        open.page_read(page(&[1, 2]), false);
        open.count_page(MINUTE);
        written(&mut open, run(1), Change::Closed);
        written(&mut open, run(4), Change::Closed);
        written(&mut open, run(5), Change::Opened);
        written(&mut open, run(6), Change::Opened);
        written(&mut open, run(6), Change::Closed);
        count_last(&mut open, &[3, 5]);
        assert_eq!(shown(&open), 3, "2, 3 and 5");
    }

    /// The page shows the commit, and the callback comes later.
    #[test]
    fn page_waits_for_the_callbacks_of_writes_that_were_submitted_before_it_was_read() {
        let mut open = new();
        open.want(&shards(&[0]), MINUTE);
        let (closes, starts) = (open.write_begins(), open.write_begins());
        assert!(!open.page_read(page(&[2, 3]), true), "run 1 is closed, and run 3 was started");
        assert!(!open.count_page(MINUTE));
        assert!(!called_back(&mut open, run(1), Change::Closed, closes));
        assert!(called_back(&mut open, run(3), Change::Opened, starts), "the last one that was waited for");
        assert!(!open.count_page(MINUTE));
        assert_eq!(shown(&open), 2);
    }

    #[test]
    fn page_waits_for_no_write_that_was_submitted_after_it_was_read() {
        let mut open = new();
        open.want(&shards(&[0]), MINUTE);
        let before = open.write_begins();
        assert!(!open.page_read(page(&[1]), true));
        // A run that starts and closes, and whose end is called back first.
        let (start, end) = (open.write_begins(), open.write_begins());
        called_back(&mut open, run(2), Change::Closed, end);
        assert!(open.write_ends(before));
        open.count_page(MINUTE);
        assert_eq!(shown(&open), 0);
        assert!(!called_back(&mut open, run(2), Change::Opened, start));
        assert_eq!(shown(&open), 1);
    }

    #[test]
    fn runs_of_shards_that_move_are_counted_where_they_are() {
        let mut open = new();
        let in_shard = |sequence, shard| (RunNo::new(sequence, Shard(shard)), Name::from("w"));
        let all = vec![in_shard(1, 7), in_shard(2, 8), in_shard(3, 8), in_shard(4, 9)];
        open.want(&shards(&[7]), MINUTE);
        assert!(!open.want(&shards(&[8]), MINUTE), "one count at a time");
        open.page_read(all.clone(), true);
        assert!(open.count_page(MINUTE), "the next count begins");
        assert_eq!(shown(&open), 1);
        open.page_read(all.clone(), true);
        open.count_page(MINUTE);
        assert_eq!(shown(&open), 3);
        written(&mut open, all[3].0, Change::Closed);
        assert_eq!(shown(&open), 3, "another node's");
        open.lose(|shard| shard == Shard(8));
        assert_eq!(shown(&open), 1);
        written(&mut open, all[1].0, Change::Closed);
        assert_eq!(shown(&open), 1);
    }

    #[test]
    fn shard_that_moves_away_while_it_is_counted_is_not_shown() {
        let mut open = new();
        open.want(&shards(&[0]), MINUTE);
        open.want(&shards(&[1]), MINUTE);
        open.lose(|_| true);
        count_last(&mut open, &[1]);
        assert_eq!((shown(&open), open.next_page()), (0, None));
    }

    #[test]
    fn count_that_failed_begins_anew_when_it_is_wanted_again() {
        let mut open = new();
        open.want(&shards(&[0]), MINUTE);
        open.give_up();
        assert_eq!(open.next_page(), None);
        assert!(open.want_again(MINUTE));
        count_last(&mut open, &[1]);
        assert_eq!(shown(&open), 1);
    }

    #[test]
    fn all_is_counted_again_after_a_minute_and_after_a_hundred_times_as_long_as_it_took() {
        let mut open = new();
        open.want(&shards(&[0]), MINUTE);
        count_last(&mut open, &[1]);
        let after = |seconds| MINUTE.after(Duration::from_secs(seconds));
        assert!(!open.want_again(after(59)));
        assert!(open.want_again(after(60)));
        open.page_read(page(&[1, 2]), true);
        assert_eq!(shown(&open), 1, "the old number until there is a new one");
        open.count_page(after(70));
        assert_eq!(shown(&open), 2);
        assert!(!open.want_again(after(1069)));
        assert!(open.want_again(after(1070)));
    }
}
