//! What a URL opened: a store of ours, or a cluster.

use std::path::PathBuf;
use std::sync::Arc;

use dacapo_client::Capabilities;
use dacapo_core::Name;
use dacapo_engine::{CrashLimits, Reader, StoreClient, features};
use dacapo_store::{MemoryStore, Store};

use crate::Layers;
use crate::client::link::Link;
use crate::client::url::Place;
use crate::client::{Connection, Result};

/// An opened backend that serves nothing yet.
pub(crate) enum Opened {
    /// A store, for the embedded engine.
    Store {
        store: Arc<dyn Store>,
        /// The name of the kind of store, as errors give it.
        backend: &'static str,
        read_only: bool,
        /// The file, if it is one.
        file: Option<PathBuf>,
    },
    /// A program that serves runs.
    #[cfg(feature = "control")]
    Program(Arc<dyn dacapo_client::Client>),
    /// A connection to a Temporal cluster.
    #[cfg(feature = "temporal")]
    Cluster(dacapo_temporal::Cluster),
}

impl Opened {
    pub(crate) async fn open(place: Place) -> Result<Self> {
        let (backend, read_only, file) = (place.backend(), place.is_read_only(), place.file());
        let store: Arc<dyn Store> = match place {
            Place::Memory => Arc::new(MemoryStore::new()),
            #[cfg(feature = "sqlite")]
            Place::Sqlite { path, read_only } => dacapo_engine::blocking(move || sqlite(&path, read_only)).await??,
            #[cfg(not(feature = "sqlite"))]
            Place::Sqlite { .. } => {
                return Err(crate::Error::Url(
                    "SQLite is not part of this build: enable the feature `sqlite`".to_owned(),
                ));
            }
            #[cfg(feature = "postgres")]
            Place::Postgres { url, read_only } => dacapo_engine::blocking(move || postgres(&url, read_only)).await??,
            #[cfg(feature = "temporal")]
            Place::Temporal(address) => return Ok(Self::Cluster(dacapo_temporal::Cluster::connect(address).await?)),
            #[cfg(feature = "control")]
            Place::Program(target) => return Ok(Self::Program(dacapo_control::RemoteClient::connect(target).await?)),
        };
        Ok(Self::Store { store, backend, read_only, file })
    }

    /// A connection that serves nothing.
    pub(crate) fn connection(&self, crash_limits: CrashLimits, layers: &Layers) -> Connection {
        match self {
            Self::Store { store, backend, .. } => {
                let reader = Reader::new(store.clone()).with_crash_limits(crash_limits);
                let client = Arc::new(StoreClient::new(reader.clone(), backend));
                Connection(Link::new(client, layers, Some(reader), None))
            }
            #[cfg(feature = "temporal")]
            Self::Cluster(cluster) => {
                let client = Arc::new(dacapo_temporal::ClusterClient::new(cluster));
                Connection(Link::new(client, layers, None, None))
            }
            #[cfg(feature = "control")]
            Self::Program(client) => Connection(Link::over(client.clone(), layers)),
        }
    }

    /// The features of the backend for a program that serves.
    pub(crate) fn capabilities(&self) -> Capabilities {
        match self {
            Self::Store { backend, .. } => Capabilities::new(*backend, features()),
            #[cfg(feature = "temporal")]
            Self::Cluster(_) => dacapo_temporal::capabilities(),
            #[cfg(feature = "control")]
            Self::Program(client) => client.capabilities().clone(),
        }
    }

    /// The queue of a program that names none.
    pub(crate) fn default_queue(&self) -> Name {
        match self {
            Self::Store { .. } => Name::from_static(dacapo_engine::DEFAULT_QUEUE),
            #[cfg(feature = "control")]
            Self::Program(_) => Name::from_static(dacapo_engine::DEFAULT_QUEUE),
            #[cfg(feature = "temporal")]
            Self::Cluster(cluster) => cluster.queue().clone(),
        }
    }
}

#[cfg(feature = "sqlite")]
fn sqlite(path: &str, read_only: bool) -> Result<Arc<dyn Store>> {
    use dacapo_sqlite::SqliteStore;
    let store = if read_only { SqliteStore::open_read_only(path) } else { SqliteStore::open(path) };
    Ok(Arc::new(store.map_err(dacapo_client::Error::from)?))
}

#[cfg(feature = "postgres")]
fn postgres(url: &str, read_only: bool) -> Result<Arc<dyn Store>> {
    use dacapo_postgres::PostgresStore;
    let store = if read_only { PostgresStore::open_read_only(url) } else { PostgresStore::open(url) };
    Ok(Arc::new(store.map_err(dacapo_client::Error::from)?))
}
