//! What handles, starts and lists share: the client of a backend, and what must live as long as they do.

use std::sync::Arc;

use dacapo_client::{Client, Error, Feature};
use dacapo_engine::Reader;

use crate::client::Result;
use crate::client::serving::Serving;

/// A link to a backend. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Link(Arc<Shared>);

struct Shared {
    client: Arc<dyn Client>,
    /// Reads histories for export; only backends with a store of ours have one.
    reader: Option<Reader>,
    /// What serves in this process, if anything does.
    _serving: Option<Arc<Serving>>,
}

impl Link {
    /// A link to a backend that is reached by its client alone.
    pub(crate) fn over(client: Arc<dyn Client>) -> Self {
        Self(Arc::new(Shared { client, reader: None, _serving: None }))
    }

    /// A link to a store, and to what serves it in this process.
    pub(crate) fn over_store(client: Arc<dyn Client>, reader: Reader, serving: Option<Arc<Serving>>) -> Self {
        Self(Arc::new(Shared { client, reader: Some(reader), _serving: serving }))
    }

    pub(crate) fn client(&self) -> &Arc<dyn Client> {
        &self.0.client
    }

    /// The reader of the store, for a feature that needs one.
    pub(crate) fn reader(&self, feature: Feature) -> Result<Reader> {
        let missing = || Error::Unsupported { feature, backend: self.client().capabilities().backend.clone() }.into();
        self.0.reader.clone().ok_or_else(missing)
    }
}
