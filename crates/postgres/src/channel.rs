//! The connection over which this node sends what waits in its outbox, and receives the notifications of others. They are sent
//! outside of commits, and several together. One thread does both.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::time::{Duration, Instant};

use dacapo_store::NodeNo;
use futures::FutureExt as _;
use tokio::runtime::Builder;
use tokio_postgres::{AsyncMessage, Client};

use crate::address::{Address, Encryption};
use crate::calls::{answer, call, end_lost_calls, forget_calls, take_answers, take_calls};
use crate::failure::Failure;
use crate::link::begin_session;
use crate::notification::{Entry, Listener, payloads_of, read};
use crate::outbox::{Item, Outbox};
use crate::schema::lock_space;
use crate::session::Session;
use crate::tls;

const NOTIFY: &str =
    "SELECT pg_notify(sent.channel, sent.payload) FROM unnest($1::text[], $2::text[]) AS sent (channel, payload)";

/// The pauses between two attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Sends and receives until the outbox is closed. Runs on a thread of its own.
pub(crate) fn run(address: &Address, outbox: &Outbox, listener: &dyn Listener) {
    let runtime = match Builder::new_current_thread().enable_io().enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(%error, "this node cannot notify the others"),
    };
    runtime.block_on(async {
        let mut pause = FIRST_PAUSE;
        while !outbox.is_closed() {
            let began = Instant::now();
            match connected(address, outbox, listener).await {
                Ok(()) => return,
                Err(failure) => tracing::debug!(?failure, "the connection for notifications is lost"),
            }
            // A connection that lasted was a good one.
            pause = if began.elapsed() > LONGEST_PAUSE { FIRST_PAUSE } else { pause };
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    });
}

/// Returns the name of the channel on which a node listens.
fn channel(schema: &str, node: NodeNo) -> String {
    format!("dacapo_{:08x}_{}", lock_space(schema).cast_unsigned(), node.0)
}

async fn connected(address: &Address, outbox: &Outbox, listener: &dyn Listener) -> Result<(), Failure> {
    match address.encryption {
        Encryption::None => {
            let (client, mut connection) = address.config.connect(tokio_postgres::NoTls).await?;
            serve(address, outbox, listener, client, move |cx| connection.poll_message(cx)).await
        }
        _ => {
            let (client, mut connection) = address.config.connect(tls::connector(address)?).await?;
            serve(address, outbox, listener, client, move |cx| connection.poll_message(cx)).await
        }
    }
}

type Polled = std::task::Poll<Option<Result<AsyncMessage, tokio_postgres::Error>>>;

/// Drives a connection: what the server sends goes to `listener`, what is in the outbox goes to the server.
async fn serve(
    address: &Address,
    outbox: &Outbox,
    listener: &dyn Listener,
    client: Client,
    mut poll: impl FnMut(&mut std::task::Context<'_>) -> Polled,
) -> Result<(), Failure> {
    let session = Session { address, client: &client, me: outbox.node() };
    let work = async {
        begin_session(&client, address).await?;
        session.script(&format!("LISTEN {}", channel(&address.schema, session.me))).await?;
        end_lost_calls(&session, outbox).await?;
        // Notifications that came before are lost: what they were about is found by looking.
        listener.reconnected();
        outbox.push([Item::TakeCalls]);
        outbox.look();
        loop {
            if outbox.node() != session.me {
                return Err(Failure::Disconnected("this node has another number now".to_owned()));
            }
            let items = outbox.take();
            if !items.is_empty() {
                let sending = Sending { outbox, items, entries: BTreeMap::new() };
                send(&session, listener, sending).await?;
            } else if outbox.is_closed() {
                return Ok::<(), Failure>(());
            } else {
                outbox.wait().await;
                // A moment later more may be there, which goes in the same notification.
                tokio::task::yield_now().await;
            }
        }
    };
    let receiving = async {
        loop {
            match poll_fn(&mut poll).await {
                Some(Ok(AsyncMessage::Notification(notification))) => {
                    notification
                        .payload()
                        .split(' ')
                        .filter_map(read)
                        .for_each(|entry| receive(outbox, listener, entry));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Failure::from(error),
                None => return Failure::Disconnected("the server has closed the connection".to_owned()),
            }
        }
    };
    futures::select_biased! {
        done = work.fuse() => done,
        failure = receiving.fuse() => Err(failure),
    }
}

fn receive(outbox: &Outbox, listener: &dyn Listener, entry: Entry) {
    match entry {
        Entry::Notice(notice) => listener.notified(notice),
        Entry::Members => listener.members_changed(),
        Entry::Call => outbox.push([Item::TakeCalls]),
        Entry::Answer => outbox.push([Item::TakeAnswers]),
    }
}

/// Items that are being sent. Those that are not, or not known to be when the connection is lost, wait again.
struct Sending<'o> {
    outbox: &'o Outbox,
    items: VecDeque<Item>,
    /// The notifications of other nodes, which go last and together.
    entries: BTreeMap<NodeNo, BTreeSet<Entry>>,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        let unsent = std::mem::take(&mut self.entries).into_iter();
        let unsent = unsent.flat_map(|(node, entries)| entries.into_iter().map(move |entry| Item::Notify(node, entry)));
        self.outbox.put_back(unsent.chain(std::mem::take(&mut self.items)));
    }
}

/// Sends items.
async fn send(session: &Session<'_>, listener: &dyn Listener, mut sending: Sending<'_>) -> Result<(), Failure> {
    let Sending { outbox, items, entries } = &mut sending;
    while let Some(item) = items.front() {
        let sent = send_item(session, outbox, listener, item, entries).await;
        if let Err(failure) = sent {
            if !matches!(failure, Failure::Disconnected(_) | Failure::Conflict(_)) {
                // It would fail again, and keep back all that comes after it.
                tracing::error!(?failure, "a node cannot be notified or called");
                items.pop_front().into_iter().for_each(|item| outbox.refuse(&item));
            }
            return Err(failure);
        }
        items.pop_front();
    }
    let (mut channels, mut payloads) = (Vec::new(), Vec::new());
    for (node, entries) in &*entries {
        for payload in payloads_of(entries) {
            channels.push(channel(&session.address.schema, *node));
            payloads.push(payload);
        }
    }
    if !channels.is_empty() {
        session.query(NOTIFY, &[&channels, &payloads]).await?;
    }
    entries.clear();
    Ok(())
}

async fn send_item(
    session: &Session<'_>,
    outbox: &Outbox,
    listener: &dyn Listener,
    item: &Item,
    entries: &mut BTreeMap<NodeNo, BTreeSet<Entry>>,
) -> Result<(), Failure> {
    let mut add = |node: NodeNo, entry| _ = entries.entry(node).or_default().insert(entry);
    match item {
        Item::Notify(node, entry) if *node == session.me => match entry {
            Entry::Notice(notice) => listener.notified(notice.clone()),
            Entry::Members => listener.members_changed(),
            Entry::Call => take_calls(session, outbox, listener).await?,
            Entry::Answer => take_answers(session, outbox).await?,
        },
        Item::Notify(node, entry) => add(*node, entry.clone()),
        // Its caller may have learned meanwhile that the node is gone.
        Item::Call { id, .. } if !outbox.waits_for(*id) => {}
        Item::Call { id, node, request } => {
            call(session, *id, *node, request).await?;
            add(*node, Entry::Call);
        }
        Item::Answer { id, answer: text } => {
            if let Some(caller) = answer(session, *id, text).await? {
                add(caller, Entry::Answer);
            }
            outbox.end_call(*id);
        }
        Item::TakeCalls => take_calls(session, outbox, listener).await?,
        Item::TakeAnswers => take_answers(session, outbox).await?,
        Item::Forget(calls) => forget_calls(session, calls).await?,
    }
    Ok(())
}
