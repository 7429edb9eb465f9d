//! Calls that only the owner of a run can carry out, because it has the run in memory: another node sends them to the owner,
//! and hands on the answer.

use std::time::Duration;

use dacapo_client::{ClientCall, ClientFuture, ClientReply, Error, Result, RunRef};
use dacapo_store::{NodeNo, Recipient, Refused, RunNo, StoreError};
use dacapo_worker::CompletionToken;
use tokio::sync::oneshot;

use crate::api::row;
use crate::engine::Engine;
use crate::host::WorkKind;
use crate::nodes::hand_over::moved;
use crate::nodes::pause::pause;
use crate::read::RunId;

/// How often a call that changes nothing is sent again because the owner has changed meanwhile.
const TRIES: u32 = 20;

/// The first pause before that, which doubles each time up to the longest. All together last longer than a lease.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Has the owner of a run carry out a call: another node, or this process.
pub(super) fn routed<T, W>(
    engine: &Engine,
    run: RunRef,
    call: impl Fn(RunRef) -> ClientCall + Send + Sync + 'static,
    here: impl FnOnce(Engine, RunRef) -> W + Send + 'static,
) -> ClientFuture<T>
where
    T: TryFrom<ClientReply, Error = ClientReply> + Send + 'static,
    W: Future<Output = Result<T>> + Send + 'static,
{
    let engine = engine.clone();
    if engine.shared.nodes().is_none() || engine.is_called {
        return Box::pin(here(engine, run));
    }
    Box::pin(async move {
        if let Some(reply) = at_owner(&engine, &run, || call(run.clone())).await? {
            return read(reply);
        }
        match here(engine.clone(), run.clone()).await {
            // The run moved while the call waited here.
            Err(error) if error == moved() && changes_nothing(&call(run.clone())) => {
                at_owner(&engine, &run, || call(run.clone())).await?.map_or(Err(error), read)
            }
            answer => answer,
        }
    })
}

fn read<T: TryFrom<ClientReply, Error = ClientReply>>(reply: ClientReply) -> Result<T> {
    T::try_from(reply).map_err(|other| {
        Error::Unavailable(format!("the node that plays the run runs another build, and answered {other:?}"))
    })
}

/// Returns the run of a completion token, if it is one.
pub(super) fn run_of_token(token: &str) -> Option<RunRef> {
    let token: CompletionToken = token.parse().ok()?;
    Some(RunRef::exact(token.workflow_id, token.run_id))
}

/// Has another node carry out a call, if it owns the run. None: this process does, or any can do it.
async fn at_owner(engine: &Engine, run: &RunRef, call: impl Fn() -> ClientCall) -> Result<Option<ClientReply>> {
    for tries in 0..TRIES {
        let Some(owned) = owned_elsewhere(engine, run).await? else { return Ok(None) };
        let call = call();
        let may_repeat = changes_nothing(&call);
        match call_node(engine, Recipient::OwnerOf(owned), &call).await {
            Err(Called::ByNone) => {}
            Err(Called::Failed(Error::Unavailable(_))) if may_repeat => {}
            Err(Called::Failed(error)) => return Err(error),
            Ok(reply) => return Ok(Some(reply)),
        }
        pause(&engine.shared, FIRST_PAUSE.saturating_mul(1 << tries.min(10)).min(LONGEST_PAUSE)).await;
        engine.shared.check()?;
    }
    Err(moved())
}

/// Returns the number of a run that is open and that another node owns.
async fn owned_elsewhere(engine: &Engine, run: &RunRef) -> Result<Option<RunNo>> {
    let of = RunId::from(run.clone());
    let row = engine.blocking(WorkKind::Read, move |shared| {
        // Without a lease another node may have played the run on, and what memory says is outdated.
        shared.nodes().map_or(Ok(()), |nodes| nodes.confirm_lease())?;
        row(shared, &of)
    });
    let row = row.await?;
    Ok((row.status.is_open() && !engine.shared.owns(row.no)).then_some(row.no))
}

/// Has a node carry out a call, whichever run it is for.
pub(super) async fn at_node<T: TryFrom<ClientReply, Error = ClientReply>>(
    engine: &Engine,
    node: NodeNo,
    call: &ClientCall,
) -> Result<T> {
    match call_node(engine, Recipient::Node(node), call).await {
        Ok(reply) => read(reply),
        Err(Called::ByNone) => Err(moved()),
        Err(Called::Failed(error)) => Err(error),
    }
}

/// The reason why a call has no reply.
enum Called {
    /// There is no such node at this moment: the call was not carried out.
    ByNone,
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Called {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

async fn call_node(engine: &Engine, to: Recipient, call: &ClientCall) -> std::result::Result<ClientReply, Called> {
    let unreadable = |error: serde_json::Error| Error::Unavailable(format!("an answer cannot be read: {error}"));
    let request = serde_json::to_vec(call).map_err(unreadable)?;
    let (answer, answered) = oneshot::channel();
    let call = move |shared: &std::sync::Arc<crate::shared::Shared>| {
        if let Some(nodes) = shared.nodes() {
            nodes.call(to, request, Box::new(move |result| drop(answer.send(result))));
        }
        Ok(())
    };
    engine.blocking(WorkKind::Write, call).await?;
    match answered.await.map_err(|_| Error::ShutDown)? {
        Ok(bytes) => Ok(serde_json::from_slice::<Result<ClientReply>>(&bytes).map_err(unreadable)??),
        Err(StoreError::Refused(Refused::NotOwner)) => Err(Called::ByNone),
        Err(error) => Err(error.into()),
    }
}

/// Whether a call may be carried out twice: it changes nothing, or it has an id by which the second is recognised.
const fn changes_nothing(call: &ClientCall) -> bool {
    use ClientCall::{Describe, Inspect, Query, Update, UpdateResult};
    matches!(call, Query(..) | Inspect(_) | Describe(_) | Update(..) | UpdateResult(..))
}
