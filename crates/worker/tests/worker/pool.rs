//! Threads for turns: places of a queue, threads that user code holds, threads that it never gives back.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use dacapo_core::Name;
use dacapo_worker::{TurnPool, TurnThread};

/// A door that work waits at, and who is there.
#[derive(Clone, Default)]
struct Door(Arc<(Mutex<(usize, bool)>, Condvar)>);

impl Door {
    /// Waits until the door is open.
    fn pass(&self) {
        let (state, changed) = &*self.0;
        let mut here = state.lock().unwrap();
        here.0 += 1;
        changed.notify_all();
        drop(changed.wait_while(here, |(_, open)| !*open).unwrap());
    }

    /// Waits until so many have come.
    fn wait_for(&self, number: usize) {
        let (state, changed) = &*self.0;
        let here = state.lock().unwrap();
        let (here, waited) = changed.wait_timeout_while(here, PATIENCE, |(here, _)| *here < number).unwrap();
        assert!(!waited.timed_out(), "{} of {number} have come", here.0);
    }

    fn open(&self) {
        self.0.0.lock().unwrap().1 = true;
        self.0.1.notify_all();
    }
}

fn queue(name: &'static str) -> Name {
    name.into()
}

fn pool(threads: usize, queues: &[(&'static str, usize)]) -> TurnPool {
    TurnPool::new(threads, queues.iter().map(|(name, places)| (queue(name), *places))).unwrap()
}

/// Work that says when it was done.
fn saying(said: &Sender<u32>, number: u32) -> impl FnOnce() + Send + 'static {
    let said = said.clone();
    move || said.send(number).unwrap()
}

/// What the next so many pieces of work say.
fn received(said: &Receiver<u32>, count: usize) -> Vec<u32> {
    let next = |number| said.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("only {number} of {count} were done"));
    (0..count).map(next).collect()
}

/// Waits until there are so many threads, so many of them abandoned.
fn wait_for_threads(pool: &TurnPool, wanted: (usize, usize)) {
    let since = Instant::now();
    while pool.threads() != wanted {
        let now = pool.threads();
        assert!(since.elapsed() < PATIENCE, "there are {now:?} threads, and {wanted:?} were expected");
        std::thread::yield_now();
    }
}

/// Far longer than anything here takes, however loaded the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// S3-41, C-25: of 250 turns that block 200 are played, and the rest wait and are not lost; they need threads of their own,
/// which leave again.
#[test]
fn of_250_turns_that_block_200_are_played_and_none_is_lost() {
    let (pool, door) = (pool(3, &[("orders", 200)]), Door::default());
    let (said, done) = channel();
    for number in 0..250 {
        let (door, say) = (door.clone(), saying(&said, number));
        pool.submit(Some(&queue("orders")), move || {
            door.pass();
            say();
        });
    }
    door.wait_for(200);
    assert_eq!(pool.depth(Some(&queue("orders"))), (50, 200));
    door.open();
    let mut all = received(&done, 250);
    all.sort();
    assert_eq!(all, (0..250).collect::<Vec<_>>());
    wait_for_threads(&pool, (3, 0));
    assert_eq!(pool.depth(Some(&queue("orders"))), (0, 0));
}

/// S3-1, S3-40: a queue whose places are all held leaves the others alone.
#[test]
fn a_full_queue_holds_up_no_other() {
    let (pool, door) = (pool(2, &[("full", 5), ("free", 5)]), Door::default());
    for _ in 0..20 {
        let door = door.clone();
        pool.submit(Some(&queue("full")), move || door.pass());
    }
    door.wait_for(5);
    let (said, done) = channel();
    for number in 0..100 {
        pool.submit(Some(&queue("free")), saying(&said, number));
    }
    pool.submit(None, saying(&said, 100));
    received(&done, 101);
    assert_eq!(pool.depth(Some(&queue("full"))), (15, 5));
    door.open();
    door.wait_for(20);
}

/// Work that came first is done first, whichever queue it is of.
#[test]
fn work_is_done_in_the_order_in_which_it_came() {
    let (pool, door) = (pool(1, &[("one", 1), ("two", 1)]), Door::default());
    let (said, done): (Sender<u32>, Receiver<u32>) = channel();
    let first = door.clone();
    pool.submit(None, move || first.pass());
    door.wait_for(1);
    for number in 0..100 {
        let name = if number % 3 == 0 { "one" } else { "two" };
        pool.submit(Some(&queue(name)), saying(&said, number));
    }
    let order: Vec<u32> = {
        door.open();
        received(&done, 100)
    };
    // More than one thread may be at work by now, so only what one queue brings is in order.
    let of = |one: bool| order.iter().copied().filter(|number| (number % 3 == 0) == one).collect::<Vec<_>>();
    assert!(of(true).is_sorted() && of(false).is_sorted(), "{order:?}");
}

/// S3-39, C-23: a thread that is given up on frees its place, another takes over, and it leaves when its work returns.
#[test]
fn an_abandoned_thread_frees_its_place_and_leaves_when_it_returns() {
    let (pool, door) = (pool(1, &[("orders", 1)]), Door::default());
    let (tell, told) = channel();
    let stuck = door.clone();
    pool.submit(Some(&queue("orders")), move || {
        tell.send(TurnThread::current().unwrap()).unwrap();
        stuck.pass();
    });
    let thread = told.recv_timeout(PATIENCE).unwrap();
    door.wait_for(1);
    thread.abandon().unwrap();
    thread.abandon().unwrap();
    assert_eq!((pool.threads(), pool.depth(Some(&queue("orders")))), ((2, 1), (0, 0)));
    let (said, done) = channel();
    pool.submit(Some(&queue("orders")), saying(&said, 7));
    assert_eq!(received(&done, 1), [7]);
    door.open();
    wait_for_threads(&pool, (1, 0));
}

/// What is queued when the pool closes is dropped, and its threads leave, those that were held too.
#[test]
fn a_closed_pool_drops_what_waits_and_its_threads_leave() {
    let (pool, door) = (pool(2, &[("orders", 1)]), Door::default());
    for _ in 0..3 {
        let door = door.clone();
        pool.submit(Some(&queue("orders")), move || door.pass());
    }
    door.wait_for(1);
    pool.close();
    assert_eq!(pool.depth(Some(&queue("orders"))), (0, 1));
    let (said, done) = channel();
    pool.submit(None, saying(&said, 1));
    drop(said);
    assert_eq!(done.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected), "no thread takes it");
    door.open();
    wait_for_threads(&pool, (0, 0));
}

/// Work that panics takes no thread along.
#[test]
fn work_that_panics_costs_no_thread() {
    let pool = pool(1, &[]);
    let (said, done) = channel();
    pool.submit(None, || panic!("on purpose"));
    pool.submit(Some(&queue("idle")), saying(&said, 1));
    assert_eq!((received(&done, 1), pool.threads()), (vec![1], (1, 0)));
}

/// Threads that were started because turns blocked leave although work keeps coming: work without an end must not keep
/// them all awake.
#[test]
fn threads_that_are_no_longer_needed_leave_under_steady_load() {
    let (pool, door) = (pool(2, &[("orders", 50)]), Door::default());
    for _ in 0..30 {
        let door = door.clone();
        pool.submit(Some(&queue("orders")), move || door.pass());
    }
    door.wait_for(30);
    assert!(pool.threads().0 >= 30);
    door.open();
    let since = Instant::now();
    let (said, done) = channel();
    while pool.threads() != (2, 0) {
        assert!(since.elapsed() < PATIENCE, "there are still {:?} threads", pool.threads());
        // More pieces than there are threads, again and again: there is always something to take.
        (0..200).for_each(|number| pool.submit(Some(&queue("orders")), saying(&said, number)));
        received(&done, 200);
    }
}

/// Work that no caller waits for is done too: by a thread of the pool that asked for it, whose own work comes first, or by any if another
/// thread asks.
#[test]
fn unhurried_work_is_done_after_that_of_the_thread_that_asks_and_from_elsewhere_at_once() {
    let pool = Arc::new(pool(1, &[("orders", 1)]));
    let (said, done) = channel();
    let (inner, unhurried, own) = (pool.clone(), saying(&said, 2), saying(&said, 1));
    pool.submit(Some(&queue("orders")), move || {
        inner.submit_unhurried(unhurried);
        own();
    });
    assert_eq!(received(&done, 2), [1, 2]);
    pool.submit_unhurried(saying(&said, 3));
    assert_eq!(received(&done, 1), [3]);
}

/// A thread that is given up on does no more work, so what it leaves is done by the one that takes its place.
#[test]
fn unhurried_work_of_a_thread_that_is_given_up_on_is_done_by_another() {
    let (pool, door) = (Arc::new(pool(1, &[("orders", 1)])), Door::default());
    let (said, done) = channel();
    let (inner, held, before, after) = (pool.clone(), door.clone(), saying(&said, 1), saying(&said, 2));
    pool.submit(Some(&queue("orders")), move || {
        inner.submit_unhurried(before);
        TurnThread::current().unwrap().abandon().unwrap();
        inner.submit_unhurried(after);
        held.pass();
    });
    assert_eq!(received(&done, 2), [1, 2]);
    door.open();
}
