//! What nodes tell each other: notifications of the database, sent outside of commits and gathered, and calls as rows of a
//! table that is in no log. One thread sends and hears, over a connection of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dacapo_core::Seq;
use dacapo_store::{CallAnswered, News, NodeNo, Recipient, Refused, RunNo, StoreError};
use dacapo_sync::{Mutex, ranks};
use futures::FutureExt as _;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio_postgres::{AsyncMessage, Client};

use crate::address::{Address, Encryption};
use crate::failure::Failure;
use crate::link::{begin_session, deadline};
use crate::node::Node;
use crate::row::get;
use crate::schema::lock_space;
use crate::tls;

/// The most bytes of a notification: the server takes 8,000.
const PAYLOAD: usize = 7_900;

const NOTIFY: &str =
    "SELECT pg_notify(told.channel, told.words) FROM unnest($1::text[], $2::text[]) AS told (channel, words)";
// Each of these may be made again if its answer is lost.
const CALL: &str = "INSERT INTO calls (id, node, caller, request) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
const SEE_CALLS: &str = "SELECT id, request FROM calls WHERE node = $1 AND NOT is_taken AND answer IS NULL";
const TAKE_CALLS: &str = "UPDATE calls SET is_taken = true WHERE id = ANY($1)";
const ANSWER: &str = "UPDATE calls SET answer = $2 WHERE id = $1 RETURNING caller";
const SEE_ANSWERS: &str = "SELECT id, answer FROM calls WHERE caller = $1 AND answer IS NOT NULL";
/// Calls that are answered, or that no node will answer any more.
const FORGET_CALLS: &str = "DELETE FROM calls WHERE caller = $1 AND id = ANY($2)";
const OWN_CALLS: &str = "SELECT id FROM calls WHERE caller = $1";

/// The pauses between two attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A word of a notification: news, or that something else is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Word {
    News(News),
    /// The nodes or their shards have changed.
    Members,
    /// A call waits.
    Call,
    /// An answer waits.
    Answer,
}

/// An item that waits to be sent.
enum Item {
    Tell(NodeNo, Word),
    Call { id: i64, node: NodeNo, request: Vec<u8> },
    Answer { id: i64, answer: Vec<u8> },
    TakeCalls,
    TakeAnswers,
    Forget(Vec<i64>),
}

/// The listener of the thread.
pub(crate) trait Hears: Send + Sync {
    fn told(&self, news: News);
    fn called(&self, id: i64, request: Vec<u8>);
    /// The nodes or their shards have changed.
    fn members_changed(&self);
    /// Notifications may have been lost.
    fn reconnected(&self);
}

/// The news and calls that the thread sends, and the calls that wait for an answer.
pub(crate) struct Outbox {
    node: Arc<Node>,
    items: Mutex<Vec<Item>>,
    wake: Notify,
    /// Calls that wait for an answer: the node that was called, and which of its processes.
    waiting: Mutex<HashMap<i64, (NodeNo, i64, CallAnswered)>>,
    /// Calls of other nodes that are carried out here and are not answered yet.
    carried_out: Mutex<HashSet<i64>>,
    is_closed: AtomicBool,
}

impl Outbox {
    pub(crate) fn new(node: Arc<Node>) -> Arc<Self> {
        Arc::new(Self {
            node,
            items: Mutex::new(ranks::STORE_NEWS, Vec::new()),
            wake: Notify::new(),
            waiting: Mutex::new(ranks::STORE_CALLS, HashMap::new()),
            carried_out: Mutex::new(ranks::STORE_CALLS, HashSet::new()),
            is_closed: AtomicBool::new(false),
        })
    }

    fn push(&self, items: impl IntoIterator<Item = Item>) {
        self.items.lock().extend(items);
        self.wake.notify_one();
    }

    /// Has the thread look at what has changed.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Tells nodes something.
    pub(crate) fn tell(&self, to: &Recipient, news: &News) {
        let nodes = self.node.find(to);
        self.push(nodes.into_iter().map(|node| Item::Tell(node, Word::News(news.clone()))));
    }

    /// Tells nodes that the nodes or their shards have changed.
    pub(crate) fn tell_members(&self, nodes: impl IntoIterator<Item = NodeNo>) {
        self.push(nodes.into_iter().map(|node| Item::Tell(node, Word::Members)));
    }

    /// Calls a node.
    pub(crate) fn call(&self, to: &Recipient, request: Vec<u8>, answered: CallAnswered) {
        let node = self.node.find(to).first().copied();
        let process = self.node.see(|view| view.process_of(node?));
        let (Some(node), Some(process)) = (node, process) else {
            return answered(Err(Refused::NotOwner.into()));
        };
        // 63 random bits: an id is used for seconds.
        let id = (uuid::Uuid::new_v4().as_u64_pair().0 >> 1) as i64;
        self.waiting.lock().insert(id, (node, process, answered));
        self.push([Item::Call { id, node, request }]);
    }

    /// Answers a call of another node.
    pub(crate) fn answer(&self, id: i64, answer: Vec<u8>) {
        self.push([Item::Answer { id, answer }]);
    }

    /// Looks for calls that were not told of.
    pub(crate) fn take_calls(&self) {
        self.push([Item::TakeCalls]);
    }

    /// Looks for answers, and ends the calls of nodes that are gone.
    pub(crate) fn look(&self) {
        let live: BTreeSet<(NodeNo, i64)> =
            self.node.see(|view| view.nodes.iter().map(|node| (node.row.no, node.process)).collect());
        self.end_calls(|_, called| !live.contains(&called));
        if !self.waiting.lock().is_empty() {
            self.push([Item::TakeAnswers]);
        }
    }

    /// Ends calls that no node will answer any more.
    fn end_calls(&self, is_lost: impl Fn(i64, (NodeNo, i64)) -> bool) {
        let mut waiting = self.waiting.lock();
        let lost: Vec<i64> = waiting
            .iter()
            .filter(|(id, (node, process, _))| is_lost(**id, (*node, *process)))
            .map(|(id, _)| *id)
            .collect();
        let ended: Vec<CallAnswered> = lost.iter().filter_map(|id| Some(waiting.remove(id)?.2)).collect();
        drop(waiting);
        ended.into_iter().for_each(|answered| answered(Err(gone())));
        if !lost.is_empty() {
            self.push([Item::Forget(lost)]);
        }
    }

    /// Returns the calls that wait for an answer, and those of them that are yet to be sent.
    fn open_calls(&self) -> (BTreeSet<i64>, BTreeSet<i64>) {
        let waiting = self.waiting.lock().keys().copied().collect();
        let unsent = |item: &Item| if let Item::Call { id, .. } = item { Some(*id) } else { None };
        (waiting, self.items.lock().iter().filter_map(unsent).collect())
    }

    /// Ends the call of an item that cannot be sent.
    fn refuse(&self, item: &Item) {
        let Item::Call { id, .. } = item else { return };
        let waiting = self.waiting.lock().remove(id);
        if let Some((_, _, answered)) = waiting {
            answered(Err(gone()));
        }
    }

    /// Puts back what could not be sent, before what came since.
    fn put_back(&self, items: impl IntoIterator<Item = Item>) {
        let mut waiting = self.items.lock();
        let since = std::mem::take(&mut *waiting);
        waiting.extend(items.into_iter().chain(since));
    }

    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.wake.notify_one();
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.into_values().for_each(|(_, _, answered)| answered(Err(gone())));
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

fn gone() -> StoreError {
    StoreError::Unavailable(
        "the node that plays the run went away before it answered: look whether it was done, and call again".to_owned(),
    )
}

/// Sends and hears until the outbox is closed. Runs on a thread of its own.
pub(crate) fn run(address: &Address, outbox: &Outbox, hears: &dyn Hears) {
    let runtime = match Builder::new_current_thread().enable_io().enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(%error, "nodes cannot tell each other anything"),
    };
    runtime.block_on(async {
        let mut pause = FIRST_PAUSE;
        while !outbox.is_closed() {
            let began = Instant::now();
            match connected(address, outbox, hears).await {
                Ok(()) => return,
                Err(failure) => tracing::debug!(?failure, "the connection for news is lost"),
            }
            // A connection that lasted was a good one.
            pause = if began.elapsed() > LONGEST_PAUSE { FIRST_PAUSE } else { pause };
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    });
}

fn channel(schema: &str, node: NodeNo) -> String {
    format!("dacapo_{:08x}_{}", lock_space(schema).cast_unsigned(), node.0)
}

async fn connected(address: &Address, outbox: &Outbox, hears: &dyn Hears) -> Result<(), Failure> {
    match address.encryption {
        Encryption::None => {
            let (client, mut connection) = address.config.connect(tokio_postgres::NoTls).await?;
            serve(address, outbox, hears, client, move |cx| connection.poll_message(cx)).await
        }
        _ => {
            let (client, mut connection) = address.config.connect(tls::connector(address)?).await?;
            serve(address, outbox, hears, client, move |cx| connection.poll_message(cx)).await
        }
    }
}

type Polled = std::task::Poll<Option<Result<AsyncMessage, tokio_postgres::Error>>>;

/// Drives a connection: what the server says goes to `hears`, what is in the outbox goes to the server.
async fn serve(
    address: &Address,
    outbox: &Outbox,
    hears: &dyn Hears,
    client: Client,
    mut poll: impl FnMut(&mut std::task::Context<'_>) -> Polled,
) -> Result<(), Failure> {
    let me = outbox.node.no();
    let listening = format!("LISTEN {}", channel(&address.schema, me));
    let work = async {
        begin_session(&client, address).await?;
        in_time(address, client.batch_execute(&listening)).await?;
        end_lost_calls(address, outbox, &client, me).await?;
        // What was told before is found by looking.
        hears.reconnected();
        outbox.push([Item::TakeCalls]);
        outbox.look();
        loop {
            if outbox.node.no() != me {
                return Err(Failure::Disconnected("this node has another number now".to_owned()));
            }
            let items = VecDeque::from(std::mem::take(&mut *outbox.items.lock()));
            if !items.is_empty() {
                let sending = Sending { outbox, items, told: BTreeMap::new() };
                send(address, hears, (&client, me), sending).await?;
            } else if outbox.is_closed() {
                return Ok::<(), Failure>(());
            } else {
                outbox.wake.notified().await;
                // A moment later more may be there, which goes in the same notification.
                tokio::task::yield_now().await;
            }
        }
    };
    let hearing = async {
        loop {
            match poll_fn(&mut poll).await {
                Some(Ok(AsyncMessage::Notification(told))) => {
                    for word in told.payload().split(' ').filter_map(read) {
                        match word {
                            Word::News(news) => hears.told(news),
                            Word::Members => hears.members_changed(),
                            Word::Call => outbox.push([Item::TakeCalls]),
                            Word::Answer => outbox.push([Item::TakeAnswers]),
                        }
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Failure::from(error),
                None => return Failure::Disconnected("the server has closed the connection".to_owned()),
            }
        }
    };
    futures::select_biased! {
        done = work.fuse() => done,
        failure = hearing.fuse() => Err(failure),
    }
}

/// Waits for an answer of the server until the deadline.
async fn in_time<T>(
    address: &Address,
    call: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(deadline(address), call).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Failure::Disconnected("the server has not answered".to_owned())),
    }
}

/// Ends calls of which the server knows nothing any more: it has lost their table.
async fn end_lost_calls(address: &Address, outbox: &Outbox, client: &Client, me: NodeNo) -> Result<(), Failure> {
    // In this order: a call that is sent later is in neither.
    let (waiting, unsent) = outbox.open_calls();
    let rows = in_time(address, client.query(OWN_CALLS, &[&me.0])).await?;
    let stored: BTreeSet<i64> = rows.iter().map(|row| get(row, 0)).collect::<Result<_, _>>()?;
    outbox.end_calls(|id, _| waiting.contains(&id) && !unsent.contains(&id) && !stored.contains(&id));
    Ok(())
}

/// Items that are being sent. Those that are not, or not known to be when the connection is lost, wait again.
struct Sending<'o> {
    outbox: &'o Outbox,
    items: VecDeque<Item>,
    /// The words for other nodes, which go last and together.
    told: BTreeMap<NodeNo, BTreeSet<Word>>,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        let told = std::mem::take(&mut self.told).into_iter();
        let told = told.flat_map(|(node, words)| words.into_iter().map(move |word| Item::Tell(node, word)));
        self.outbox.put_back(told.chain(std::mem::take(&mut self.items)));
    }
}

/// Sends items.
async fn send(
    address: &Address,
    hears: &dyn Hears,
    (client, me): (&Client, NodeNo),
    mut sending: Sending<'_>,
) -> Result<(), Failure> {
    let Sending { outbox, items, told } = &mut sending;
    while let Some(item) = items.front() {
        let sent = send_item(address, outbox, hears, (client, me), item, told).await;
        if let Err(failure) = sent {
            if !matches!(failure, Failure::Disconnected(_) | Failure::Conflict(_)) {
                // It would fail again, and keep back all that comes after it.
                tracing::error!(?failure, "a node cannot be told something");
                items.pop_front().into_iter().for_each(|item| outbox.refuse(&item));
            }
            return Err(failure);
        }
        items.pop_front();
    }
    let (mut channels, mut payloads) = (Vec::new(), Vec::new());
    for (node, words) in &*told {
        for payload in payloads_of(words) {
            channels.push(channel(&address.schema, *node));
            payloads.push(payload);
        }
    }
    if !channels.is_empty() {
        in_time(address, client.query(NOTIFY, &[&channels, &payloads])).await?;
    }
    told.clear();
    Ok(())
}

async fn send_item(
    address: &Address,
    outbox: &Outbox,
    hears: &dyn Hears,
    (client, me): (&Client, NodeNo),
    item: &Item,
    told: &mut BTreeMap<NodeNo, BTreeSet<Word>>,
) -> Result<(), Failure> {
    match item {
        Item::Tell(node, word) if *node == me => match word {
            Word::News(news) => hears.told(news.clone()),
            Word::Members => hears.members_changed(),
            Word::Call => take_calls(address, outbox, hears, client, me).await?,
            Word::Answer => take_answers(address, outbox, client, me).await?,
        },
        Item::Tell(node, word) => _ = told.entry(*node).or_default().insert(word.clone()),
        // Its caller may have been told meanwhile that the node is gone.
        Item::Call { id, .. } if !outbox.waiting.lock().contains_key(id) => {}
        Item::Call { id, node, request } => {
            in_time(address, client.execute(CALL, &[id, &node.0, &me.0, request])).await?;
            told.entry(*node).or_default().insert(Word::Call);
        }
        Item::Answer { id, answer } => {
            if let Some(row) = in_time(address, client.query_opt(ANSWER, &[id, answer])).await? {
                told.entry(NodeNo(get(&row, 0)?)).or_default().insert(Word::Answer);
            }
            outbox.carried_out.lock().remove(id);
        }
        Item::TakeCalls => take_calls(address, outbox, hears, client, me).await?,
        Item::TakeAnswers => take_answers(address, outbox, client, me).await?,
        Item::Forget(calls) => _ = in_time(address, client.execute(FORGET_CALLS, &[&me.0, calls])).await?,
    }
    Ok(())
}

/// Carries out the calls of other nodes that wait.
async fn take_calls(
    address: &Address,
    outbox: &Outbox,
    hears: &dyn Hears,
    client: &Client,
    me: NodeNo,
) -> Result<(), Failure> {
    let rows = in_time(address, client.query(SEE_CALLS, &[&me.0])).await?;
    let mut taken: Vec<i64> = Vec::with_capacity(rows.len());
    for row in &rows {
        let id = get(row, 0)?;
        taken.push(id);
        if outbox.carried_out.lock().insert(id) {
            hears.called(id, get(row, 1)?);
        }
    }
    if !taken.is_empty() {
        in_time(address, client.execute(TAKE_CALLS, &[&taken])).await?;
    }
    Ok(())
}

/// Hands on the answers to calls of this node.
async fn take_answers(address: &Address, outbox: &Outbox, client: &Client, me: NodeNo) -> Result<(), Failure> {
    let rows = in_time(address, client.query(SEE_ANSWERS, &[&me.0])).await?;
    let mut ended: Vec<i64> = Vec::with_capacity(rows.len());
    for row in &rows {
        let id = get(row, 0)?;
        ended.push(id);
        let waiting = outbox.waiting.lock().remove(&id);
        if let Some((_, _, answered)) = waiting {
            answered(Ok(get(row, 1)?));
        }
    }
    if !ended.is_empty() {
        in_time(address, client.execute(FORGET_CALLS, &[&me.0, &ended])).await?;
    }
    Ok(())
}

/// Returns words as texts that a notification can carry.
fn payloads_of(words: &BTreeSet<Word>) -> Vec<String> {
    let mut payloads: Vec<String> = Vec::new();
    for word in words.iter().filter_map(write) {
        match payloads.last_mut().filter(|payload| payload.len() + word.len() < PAYLOAD) {
            Some(payload) => {
                payload.push(' ');
                payload.push_str(&word);
            }
            None => payloads.push(word),
        }
    }
    payloads
}

fn write(word: &Word) -> Option<String> {
    Some(match word {
        Word::News(News::Stored(run)) => format!("s{}", run.0),
        Word::News(News::Watched(run, node)) => format!("w{}:{}", run.0, node.0),
        Word::News(News::Changed(run)) => format!("c{}", run.0),
        Word::News(News::Cancelled(run, seq)) => format!("x{}:{}", run.0, seq.0),
        Word::News(News::Tasks) => "t".to_owned(),
        Word::News(_) => return None,
        Word::Members => "m".to_owned(),
        Word::Call => "k".to_owned(),
        Word::Answer => "a".to_owned(),
    })
}

/// Reads a word. None: a later build has sent it.
fn read(word: &str) -> Option<Word> {
    let (kind, rest) = (word.chars().next()?, word.get(1..)?);
    let run = || Some(RunNo(rest.parse().ok()?));
    let pair = || {
        let (run, other) = rest.split_once(':')?;
        Some((RunNo(run.parse().ok()?), other))
    };
    Some(match kind {
        's' => Word::News(News::Stored(run()?)),
        'c' => Word::News(News::Changed(run()?)),
        'w' => {
            let (run, node) = pair()?;
            Word::News(News::Watched(run, NodeNo(node.parse().ok()?)))
        }
        'x' => {
            let (run, seq) = pair()?;
            Word::News(News::Cancelled(run, Seq(seq.parse().ok()?)))
        }
        't' => Word::News(News::Tasks),
        'm' => Word::Members,
        'k' => Word::Call,
        'a' => Word::Answer,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_were_written() {
        let words = [
            Word::News(News::Stored(RunNo(-7))),
            Word::News(News::Watched(RunNo(1 << 40), NodeNo(3))),
            Word::News(News::Changed(RunNo(9))),
            Word::News(News::Cancelled(RunNo(5), Seq(2))),
            Word::News(News::Tasks),
            Word::Members,
            Word::Call,
            Word::Answer,
        ];
        for word in words {
            assert_eq!(read(&write(&word).unwrap()), Some(word));
        }
        assert_eq!((read("s"), read("z1"), read(""), read("wé:1")), (None, None, None, None));
    }

    #[test]
    fn many_words_go_in_several_notifications_and_none_is_too_long() {
        let words: BTreeSet<Word> = (0..5_000).map(|run| Word::News(News::Stored(RunNo(i64::MAX - run)))).collect();
        let payloads = payloads_of(&words);
        assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() < 8_000));
        let read: BTreeSet<Word> = payloads.iter().flat_map(|payload| payload.split(' ').filter_map(read)).collect();
        assert_eq!(read, words);
    }
}
