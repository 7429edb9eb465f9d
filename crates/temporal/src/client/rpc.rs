//! Requests to the server, on the runtime of the connection.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dacapo_client::{ClientFuture, Error, Result, RunRef};
use temporalio_client::Connection;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tonic::{Request, Response, Status};

use crate::connect::Cluster;
use crate::proto::common;

/// A connection with what every request needs. Cheap to clone.
#[derive(Clone)]
pub(super) struct Rpc(Arc<Cluster>);

impl Rpc {
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self(Arc::new(cluster.clone()))
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.0
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    pub(super) fn namespace(&self) -> String {
        self.0.namespace.clone()
    }

    /// The name by which the server knows this process.
    pub(super) fn identity(&self) -> String {
        self.0.connection.identity().to_owned()
    }

    /// Sends a request. The connection sends it again for about ten seconds while the server does not answer.
    pub(super) async fn send<Q, A>(
        &self,
        request: Q,
        call: impl AsyncFnOnce(Connection, Request<Q>) -> Result<Response<A>, Status>,
    ) -> Result<A, Status> {
        Ok(call(self.0.connection.clone(), Request::new(request)).await?.into_inner())
    }
}

/// Sends a request by the method of this name, and returns what the server answers.
macro_rules! send {
    ($rpc:expr, $method:ident, $request:expr) => {{
        use temporalio_client::grpc::WorkflowService as _;
        $rpc.send($request, async |mut connection, request| connection.$method(request).await)
    }};
}
pub(super) use send;

pub(super) fn execution(run: &RunRef) -> common::WorkflowExecution {
    common::WorkflowExecution {
        workflow_id: run.workflow_id.to_string(),
        run_id: run.run_id.as_ref().map(ToString::to_string).unwrap_or_default(),
    }
}

/// Awaits a call on this runtime, wherever the answer is polled. The call ends when the answer is dropped.
pub(super) fn on_runtime<T: Send + 'static>(
    runtime: Handle,
    call: impl Future<Output = Result<T>> + Send + 'static,
) -> ClientFuture<T> {
    Box::pin(async move { Task(runtime.spawn(call)).await })
}

struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> Future for Task<Result<T>> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|ended| match ended {
            Ok(result) => result,
            Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
            Err(_) => Err(Error::ShutDown),
        })
    }
}
