//! What handles, starts and lists share: the client of a backend, and what must live as long as they do.

use std::sync::Arc;

use dacapo_client::{Client, Feature};
use dacapo_engine::Reader;

use crate::client::Result;
use crate::client::serving::Serving;
use crate::interceptor::InterceptedClient;
use crate::{Converter, Layers};

/// A link to a backend. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Link(Arc<Shared>);

struct Shared {
    client: Arc<dyn Client>,
    converter: Converter,
    /// Reads histories for export; only backends with a store of ours have one.
    reader: Option<Reader>,
    /// What serves in this process, if anything does.
    _serving: Option<Arc<Serving>>,
}

impl Link {
    /// A link to a backend that is reached by its client alone.
    pub(crate) fn over(client: Arc<dyn Client>, layers: &Layers) -> Self {
        Self::new(client, layers, None, None)
    }

    fn new(client: Arc<dyn Client>, layers: &Layers, reader: Option<Reader>, serving: Option<Arc<Serving>>) -> Self {
        let client = InterceptedClient::around(client, &layers.interceptors);
        Self(Arc::new(Shared { client, converter: layers.converter.clone(), reader, _serving: serving }))
    }

    /// A link to a store, and to what serves it in this process.
    pub(crate) fn over_store(
        client: Arc<dyn Client>,
        layers: &Layers,
        reader: Reader,
        serving: Option<Arc<Serving>>,
    ) -> Self {
        Self::new(client, layers, Some(reader), serving)
    }

    pub(crate) fn converter(&self) -> &Converter {
        &self.0.converter
    }

    pub(crate) fn client(&self) -> &Arc<dyn Client> {
        &self.0.client
    }

    /// The reader of the store, for a feature that needs one.
    pub(crate) fn reader(&self, feature: Feature) -> Result<Reader> {
        self.0.reader.clone().ok_or_else(|| self.client().capabilities().lacks(feature).into())
    }
}
