//! Messages that are stored while those of their run are read: whichever read they come after, they are seen once, and who asks after their sender
//! was answered finds them seen.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use dacapo_client::ClientFuture;
use dacapo_core::Payload;
use dacapo_engine::{Cache, Engine, RunId};
use dacapo_store::{Notice, Reading, Recipient, RunNo, SharedStore};
use dacapo_testkit::{Meanwhile, SimulatedNodes};

use crate::kit::{Serve, completed, options, signal_of, text};
use crate::nodes::{collects, query, result, send, start, two};

/// Returns two nodes that keep so many runs in memory, and a run of the first that has seen one signal.
fn at_rest_in(cache: usize) -> (SimulatedNodes, RunNo) {
    let mut nodes = two(|| options().workflow("collects", collects).cache(Cache::AtMost(cache)));
    let run = start(&mut nodes, "collects", "x").run;
    send(&mut nodes, "a", "x", "s", "1");
    nodes.settle();
    assert_eq!((nodes.owner(run), nodes.engine("a").runs_in_memory()), (Some("a"), cache));
    (nodes, run)
}

/// Returns a run that is in no memory.
fn at_rest() -> (SimulatedNodes, RunNo) {
    at_rest_in(0)
}

/// Queries that are asked while their run is loaded.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<ClientFuture<Payload>>>>);

impl Asked {
    fn ask(&self, nodes: &Meanwhile, of: &Engine) {
        let mut asked = query(of, "x");
        nodes.begin(&mut asked);
        self.0.lock().unwrap().push(asked);
    }

    /// Returns the answers, in the order of the queries.
    fn answers(&self, nodes: &mut SimulatedNodes) -> Vec<String> {
        let asked = std::mem::take(&mut *self.0.lock().unwrap());
        asked.into_iter().map(|asked| text(&nodes.wait(asked).unwrap())).collect()
    }
}

/// Has a node send a signal once the owner of the run has read this, and then asks the owner what the run has seen.
fn send_after(nodes: &SimulatedNodes, reading: Reading, from: &'static str, value: &'static str, asked: &Asked) {
    let (sender, owner, asked) = (nodes.engine(from).clone(), nodes.engine("a").clone(), asked.clone());
    nodes.after_reading("a", reading, move |nodes| {
        nodes.wait(sender.signal(&RunId::of("x"), signal_of("s", value), None)).unwrap();
        asked.ask(nodes, &owner);
    });
}

/// Has a query load the run.
fn load(nodes: &mut SimulatedNodes) {
    let asked = query(nodes.engine("a"), "x");
    nodes.wait(asked).unwrap();
}

/// Does all that is to be done for a call now. Returns its answer if it has one.
fn begin<T>(nodes: &SimulatedNodes, mut call: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Option<T> {
    (0..9).find_map(|_| match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => {
            nodes.settle();
            None
        }
    })
}

#[track_caller]
fn ends_with(nodes: &mut SimulatedNodes, seen: &str) {
    send(nodes, "b", "x", "s", "end");
    assert_eq!(result(nodes, "b", "x"), completed(seen));
}

#[test]
fn a_message_that_comes_after_a_run_was_read_is_seen_once_and_before_a_later_query() {
    for from in ["a", "b"] {
        let (mut nodes, _) = at_rest();
        let asked = Asked::default();
        send_after(&nodes, Reading::Load, from, "2", &asked);
        load(&mut nodes);
        assert_eq!(asked.answers(&mut nodes), ["12"], "from {from}");
        ends_with(&mut nodes, "12");
    }
}

/// The first message has the messages of the run read again. The second comes after that.
#[test]
fn a_message_that_comes_after_messages_were_read_again_is_seen_once_and_before_a_later_query() {
    for from in ["a", "b"] {
        let (mut nodes, _) = at_rest();
        let asked = Asked::default();
        send_after(&nodes, Reading::Load, "b", "2", &asked);
        send_after(&nodes, Reading::Unseen, from, "3", &asked);
        load(&mut nodes);
        assert_eq!(asked.answers(&mut nodes), ["123", "123"], "from {from}");
        ends_with(&mut nodes, "123");
    }
}

/// Another node notifies of a message that is known, so that nothing is found when the messages are read again.
#[test]
fn a_message_that_comes_after_nothing_was_found_is_seen_once_and_before_a_later_query() {
    for from in ["a", "b"] {
        let (mut nodes, run) = at_rest();
        let (other, asked) = (nodes.store("b").clone(), Asked::default());
        nodes.after_reading("a", Reading::Load, move |_| other.notify(Recipient::OwnerOf(run), Notice::Stored(run)));
        send_after(&nodes, Reading::Unseen, from, "2", &asked);
        load(&mut nodes);
        assert_eq!(asked.answers(&mut nodes), ["12"], "from {from}");
        ends_with(&mut nodes, "12");
    }
}

#[test]
fn a_message_that_comes_while_those_of_a_run_in_memory_are_read_is_seen_once_and_before_a_later_query() {
    for from in ["a", "b"] {
        let (mut nodes, run) = at_rest_in(1);
        let asked = Asked::default();
        send_after(&nodes, Reading::Unseen, from, "2", &asked);
        nodes.store("b").notify(Recipient::OwnerOf(run), Notice::Stored(run));
        nodes.settle();
        assert_eq!(asked.answers(&mut nodes), ["12"], "from {from}");
        ends_with(&mut nodes, "12");
    }
}

/// The message is read from the store, and its sender's call brings it as well: while the run is loaded, or later.
#[test]
fn a_message_that_is_read_and_brought_is_seen_once() {
    for brought in [None, Some(Reading::Load), Some(Reading::Unseen)] {
        let (mut nodes, run) = at_rest();
        nodes.hold_answers("a", true);
        let engine = nodes.engine("a").clone();
        let mut sending = Box::pin(async move { engine.signal(&RunId::of("x"), signal_of("s", "2"), None).await });
        assert!(begin(&nodes, sending.as_mut()).is_none(), "the answer is held back");
        let (owner, other) = (nodes.store("a").clone(), nodes.store("b").clone());
        if brought == Some(Reading::Unseen) {
            nodes
                .after_reading("a", Reading::Load, move |_| other.notify(Recipient::OwnerOf(run), Notice::Stored(run)));
        }
        if let Some(reading) = brought {
            nodes.after_reading("a", reading, move |_| owner.hold_answers(false));
        }
        let mut asked = query(nodes.engine("a"), "x");
        let answer = begin(&nodes, asked.as_mut());
        assert_eq!(answer.is_some(), brought.is_some(), "a turn that sees the message is not answered either");
        nodes.hold_answers("a", false);
        nodes.wait(sending).unwrap();
        let answer = answer.unwrap_or_else(|| nodes.wait(asked));
        assert_eq!(text(&answer.unwrap()), "12", "brought after {brought:?}");
        ends_with(&mut nodes, "12");
    }
}
