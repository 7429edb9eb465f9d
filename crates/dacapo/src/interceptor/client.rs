//! A client inside interceptors.

use std::sync::Arc;

use dacapo_client::{CallClient, Caller, Capabilities, Client, ClientCall, ClientFuture, ClientReply, Error, Progress};

use crate::Interceptor;
use crate::interceptor::Next;

/// A client whose calls pass through the interceptors of an app.
pub(crate) struct InterceptedClient {
    client: Arc<dyn Client>,
    interceptors: Arc<[Arc<dyn Interceptor>]>,
}

impl InterceptedClient {
    /// Puts interceptors around a client, if there are any.
    pub(crate) fn around(client: Arc<dyn Client>, interceptors: &Arc<[Arc<dyn Interceptor>]>) -> Arc<dyn Client> {
        match interceptors.is_empty() {
            true => client,
            false => Arc::new(CallClient(Self { client, interceptors: interceptors.clone() })),
        }
    }
}

impl Caller for InterceptedClient {
    fn capabilities(&self) -> &Capabilities {
        self.client.capabilities()
    }

    fn call(&self, call: ClientCall, progress: Progress) -> ClientFuture<ClientReply> {
        let client = self.client.clone();
        let send = move |call: ClientCall| call.send(&*client, progress);
        let wrap = |interceptor: &dyn Interceptor, call, next| interceptor.client(call, next);
        Next::chain(&self.interceptors, wrap, send).run(call)
    }

    fn mismatch(&self, verb: &str) -> Error {
        Error::InvalidArgument(format!("an interceptor answered `{verb}` with the reply of another call"))
    }
}
