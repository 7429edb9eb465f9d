//! What handles, starts and lists share: the client of a backend, and what must live as long as they do.

use std::sync::Arc;

use dacapo_client::{Client, Feature, RawHistory};
use dacapo_core::{Failure, Headers, Name, Transcript};
use dacapo_engine::Reader;
use serde::Serialize;

use crate::client::Result;
use crate::client::serving::Serving;
use crate::client::transcript::{FORMAT, transcript};
use crate::interceptor::InterceptedClient;
use crate::{Converter, Layers};

/// A link to a backend. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Link(Arc<Shared>);

struct Shared {
    /// The client of the backend.
    backend: Arc<dyn Client>,
    /// The client inside the interceptors.
    client: Arc<dyn Client>,
    layers: Layers,
    /// Reads histories for export; only backends with a store of ours have one.
    reader: Option<Reader>,
    /// The backend as far as it runs in this process, if it does.
    serving: Option<Arc<dyn Serving>>,
}

impl Link {
    /// A link to a backend that is reached by its client alone.
    pub(crate) fn over(client: Arc<dyn Client>, layers: &Layers) -> Self {
        Self::new(client, layers, None, None)
    }

    /// A link to a backend, and to what serves it in this process.
    pub(crate) fn new(
        backend: Arc<dyn Client>,
        layers: &Layers,
        reader: Option<Reader>,
        serving: Option<Arc<dyn Serving>>,
    ) -> Self {
        let client = InterceptedClient::around(backend.clone(), &layers.interceptors);
        Self(Arc::new(Shared { backend, client, layers: layers.clone(), reader, serving }))
    }

    /// Returns a link to the same backend with another converter or other interceptors.
    pub(crate) fn with_layers(&self, change: impl FnOnce(&mut Layers)) -> Self {
        let mut layers = self.0.layers.clone();
        change(&mut layers);
        Self::new(self.0.backend.clone(), &layers, self.0.reader.clone(), self.0.serving.clone())
    }

    pub(crate) fn converter(&self) -> &Converter {
        &self.0.layers.converter
    }

    /// Adds a header with a value. A failure to encode it, which names the header, is kept unless there is one already.
    pub(crate) fn add_header<T>(&self, headers: &mut Headers, failed: &mut Option<Failure>, name: Name, value: &T)
    where
        T: Serialize + ?Sized,
    {
        match self.converter().encode(value) {
            Ok(value) => drop(headers.insert(name, value)),
            Err(mut failure) => {
                failure.message = format!("header {name:?}: {}", failure.message);
                failed.get_or_insert(failure);
            }
        }
    }

    pub(crate) fn client(&self) -> &Arc<dyn Client> {
        &self.0.client
    }

    /// Reads a history as our own transcript: it is one, or what serves in this process makes it one.
    pub(crate) async fn transcript(&self, history: RawHistory) -> Result<Transcript> {
        match &self.0.serving {
            Some(serving) if history.format != FORMAT => serving.transcript(history).await,
            _ => transcript(history),
        }
    }

    /// The reader of the store, for a feature that needs one.
    pub(crate) fn reader(&self, feature: Feature) -> Result<Reader> {
        self.0.reader.clone().ok_or_else(|| self.client().capabilities().lacks(feature).into())
    }
}
