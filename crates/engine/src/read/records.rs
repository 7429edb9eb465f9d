//! The records of a run, read in portions ahead of the thread that plays them: of a long history only three are ever in
//! memory.

use std::ops::ControlFlow;
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use dacapo_core::{TranscriptError, TurnRecord};
use dacapo_store::{ReadTurns, Records, RunNo, StoreError};

/// Records that cannot be read.
pub(crate) enum Unreadable {
    Store(StoreError),
    /// A record is there and cannot be decoded.
    Record(String),
    /// A record is there, in a format of another build.
    OtherBuild(String),
}

/// A damaged record concerns one run, and not the whole store.
impl From<StoreError> for Unreadable {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt(reason) => Self::Record(reason),
            error => Self::Store(error),
        }
    }
}

impl Unreadable {
    /// Converts it into an error of the store, for a caller that needs all records.
    pub(crate) fn of(self, run_id: &str) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Record(reason) | Self::OtherBuild(reason) => {
                StoreError::Corrupt(format!("{reason}, of run {run_id}"))
            }
        }
    }
}

/// Shows all records of a run with their lengths in bytes, in order, until `show` breaks.
pub(crate) fn each_record<S>(
    store: &(impl ReadTurns + Sync + ?Sized),
    run: RunNo,
    show: impl FnMut(TurnRecord, usize) -> ControlFlow<S>,
) -> Result<Option<S>, Unreadable> {
    each_record_from(store, run, 0, show)
}

/// Shows the records of this turn and later ones, as [`each_record`] does.
pub(crate) fn each_record_from<S>(
    store: &(impl ReadTurns + Sync + ?Sized),
    run: RunNo,
    from: u64,
    show: impl FnMut(TurnRecord, usize) -> ControlFlow<S>,
) -> Result<Option<S>, Unreadable> {
    let first = store.records(run, from, 0).map_err(Unreadable::from)?;
    each_record_after(store, run, first, show)
}

/// Shows these records of a run and those after them, as [`each_record`] does.
pub(crate) fn each_record_after<S>(
    store: &(impl ReadTurns + Sync + ?Sized),
    run: RunNo,
    first: Records,
    mut show: impl FnMut(TurnRecord, usize) -> ControlFlow<S>,
) -> Result<Option<S>, Unreadable> {
    let mut stopped = None;
    let read = each_row_after(store, run, first, &mut |number, bytes| {
        let shown = decode(number, bytes).map(|record| show(record, bytes.len()));
        match shown {
            Ok(ControlFlow::Continue(())) => return ControlFlow::Continue(()),
            Ok(ControlFlow::Break(reason)) => stopped = Some(Ok(reason)),
            Err(unreadable) => stopped = Some(Err(unreadable)),
        }
        ControlFlow::Break(())
    });
    read.map_err(Unreadable::from)?;
    stopped.transpose()
}

/// Decodes the record of this turn, which compares its checksum.
pub(crate) fn decode(number: u64, bytes: &[u8]) -> Result<TurnRecord, Unreadable> {
    match TurnRecord::from_bytes(bytes) {
        Ok(record) if record.number == number => Ok(record),
        Ok(record) => Err(Unreadable::Record(format!("turn {number} is recorded as turn {}", record.number))),
        Err(error @ TranscriptError::UnknownVersion { .. }) => {
            Err(Unreadable::OtherBuild(format!("turn {number}: {error}")))
        }
        Err(error) => Err(Unreadable::Record(format!("turn {number}: {error}"))),
    }
}

/// The record that was read last. The tasks of a turn are read one after the other, and there may be thousands of them
/// in one record.
#[derive(Default)]
pub(crate) struct LastRecord {
    of: Option<(RunNo, u64)>,
    record: Option<TurnRecord>,
}

impl LastRecord {
    /// The record of this turn, if it is there and can be decoded.
    pub(crate) fn get(
        &mut self,
        store: &(impl ReadTurns + ?Sized),
        run: RunNo,
        turn: u64,
    ) -> Result<Option<&TurnRecord>, StoreError> {
        if self.of != Some((run, turn)) {
            self.record = record(store, run, turn)?;
            self.of = Some((run, turn));
        }
        Ok(self.record.as_ref())
    }
}

fn record(store: &(impl ReadTurns + ?Sized), run: RunNo, turn: u64) -> Result<Option<TurnRecord>, StoreError> {
    let mut found = None;
    store.turns(run, turn, &mut |number, bytes| {
        found = decode(number, bytes).ok().filter(|_| number == turn);
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Shows all records of a run as they are stored, in order, until `show` breaks. While one portion is shown, a thread
/// reads the next. (That thread does not decode them: memory that one thread allocates and another frees costs more
/// than that gains.)
pub(crate) fn each_row(
    store: &(impl ReadTurns + Sync + ?Sized),
    run: RunNo,
    show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    each_row_after(store, run, store.records(run, 0, 0)?, show)
}

fn each_row_after(
    store: &(impl ReadTurns + Sync + ?Sized),
    run: RunNo,
    first: Records,
    show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let from = first.next();
    if from.is_none() {
        let _ = first.show(show);
        return Ok(());
    }
    thread::scope(|scope| {
        let (ahead, portions) = mpsc::sync_channel(1);
        let reader = thread::Builder::new().name("dacapo-records".to_owned());
        // Where no thread can be started, this thread reads the portions, one by one.
        let _ = reader.spawn_scoped(scope, move || read_ahead(store, run, from, &ahead));
        let mut records = first;
        loop {
            match (records.show(show), records.next()) {
                (ControlFlow::Continue(()), Some(next)) => {
                    records = portions.recv().unwrap_or_else(|_| store.records(run, next, 0))?;
                }
                _ => return Ok(()),
            }
        }
    })
}

/// Reads to the end, or until the receiver is dropped.
fn read_ahead(
    store: &(impl ReadTurns + ?Sized),
    run: RunNo,
    mut from: Option<u64>,
    ahead: &SyncSender<Result<Records, StoreError>>,
) {
    let mut room = 0;
    while let Some(turn) = from {
        let records = store.records(run, turn, room);
        // The next portion is likely as large: it need not grow step by step.
        room = records.as_ref().map_or(0, |records| records.size() + records.size() / 8);
        from = records.as_ref().ok().and_then(Records::next);
        if ahead.send(records).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A store of one run.
    #[derive(Default)]
    struct History {
        records: Vec<Vec<u8>>,
        /// The largest number of records that were shown at a time.
        most: AtomicUsize,
        /// The number of records that were shown.
        shown: AtomicUsize,
        fails_at: Option<u64>,
    }

    impl ReadTurns for History {
        fn turns(
            &self,
            _: RunNo,
            from: u64,
            show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
        ) -> Result<(), StoreError> {
            for (shown, (number, record)) in (1..).zip((0..).zip(&self.records).skip(from as usize)) {
                if self.fails_at == Some(number) {
                    return Err(StoreError::Unavailable("gone".to_owned()));
                }
                self.most.fetch_max(shown, Ordering::Relaxed);
                self.shown.fetch_add(1, Ordering::Relaxed);
                if show(number, record).is_break() {
                    break;
                }
            }
            Ok(())
        }
    }

    fn history(turns: u64) -> History {
        let record = |number| TurnRecord {
            number,
            now: Default::default(),
            history: Default::default(),
            jobs: Vec::new(),
            commands: Vec::new(),
            choices: None,
            build: "test".into(),
        };
        History { records: (0..turns).map(|number| record(number).to_bytes()).collect(), ..History::default() }
    }

    fn numbers(history: &History) -> (Vec<u64>, Result<Option<()>, Unreadable>) {
        let mut numbers = Vec::new();
        let read = each_record(history, RunNo(1), |record, _| {
            numbers.push(record.number);
            ControlFlow::Continue(())
        });
        (numbers, read)
    }

    #[test]
    fn a_history_of_any_length_is_read_in_order_and_never_whole() {
        for turns in [0, 1, 255, 256, 257, 2_000] {
            let history = history(turns);
            let (numbers, read) = numbers(&history);
            assert!(read.is_ok());
            assert_eq!(numbers, (0..turns).collect::<Vec<_>>());
            assert!(history.most.into_inner() <= Records::MOST);
        }
    }

    #[test]
    fn reader_takes_fewer_records_at_a_time_when_they_are_large() {
        let history = History { records: vec![vec![7; 600_000]; 20], ..History::default() };
        let mut seen = 0;
        each_row(&history, RunNo(1), &mut |_, _| {
            seen += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!((seen, history.most.into_inner()), (20, 2));
    }

    #[test]
    fn records_before_an_unreadable_one_are_shown() {
        let mut history = history(1_000);
        history.records[700] = vec![1, 2, 3];
        let (shown, read) = numbers(&history);
        assert_eq!(shown, (0..700).collect::<Vec<_>>());
        assert!(matches!(read, Err(Unreadable::Record(reason)) if reason.starts_with("turn 700: ")));
        history.records[700] = history.records[699].clone();
        let (_, read) = numbers(&history);
        assert!(matches!(read, Err(Unreadable::Record(reason)) if reason == "turn 700 is recorded as turn 699"));
    }

    #[test]
    fn a_store_that_fails_on_the_way_is_an_error() {
        let history = History { fails_at: Some(900), ..history(1_000) };
        let (shown, read) = numbers(&history);
        assert!(matches!(read, Err(Unreadable::Store(StoreError::Unavailable(_)))));
        assert!(shown.len() <= 900);
    }

    #[test]
    fn a_record_is_read_once_for_all_that_is_in_it() {
        let mut history = history(10);
        history.records[7] = vec![1, 2, 3];
        let mut last = LastRecord::default();
        let mut read = |turn| last.get(&history, RunNo(1), turn).unwrap().map(|record| record.number);
        assert_eq!([4, 4, 5, 7, 10].map(&mut read), [Some(4), Some(4), Some(5), None, None]);
        let before = history.shown.load(Ordering::Relaxed);
        assert_eq!([9, 9, 9].map(&mut read), [Some(9); 3]);
        assert_eq!(history.shown.load(Ordering::Relaxed), before + 1);
    }

    #[test]
    fn reader_of_a_history_stops_when_its_caller_breaks() {
        let mut seen = 0;
        let stopped = each_record(&history(5_000), RunNo(1), |record, _| {
            seen += 1;
            if record.number == 400 { ControlFlow::Break("enough") } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(stopped, Ok(Some("enough"))));
        assert_eq!(seen, 401);
    }
}
