//! Serving on a Temporal cluster.

use std::sync::Arc;

use dacapo_client::{RawHistory, Unplayable};
use dacapo_core::{Name, Transcript};
use dacapo_engine::{Engine, Options, ShutdownReport, blocking};
use dacapo_temporal::{Cluster, ClusterClient, Report, ServeOptions};
use dacapo_worker::{Effective, Health};

use crate::Layers;
use crate::client::serving::{Played, Serving, Waiting};
use crate::client::{App, Result};

/// Serves on this cluster.
pub(crate) async fn serve(
    cluster: Cluster,
    options: Options,
    settings: Effective,
    turn_threads: usize,
    layers: &Layers,
) -> Result<App> {
    let Options { registry, pins, queues, default_queue, build, double_play, redact, .. } = options;
    let app = settings.app.clone();
    let pins = pins.into_iter().collect();
    // Starts go to a queue that is served.
    let cluster = cluster.with_queue(default_queue);
    let options = ServeOptions { registry, pins, queues, app, build, double_play, redact, turn_threads };
    let serving = dacapo_temporal::ClusterWorkers::start(&cluster, options).await?;
    let client = Arc::new(ClusterClient::new(&cluster));
    Ok(App::over(client, None, Arc::new(ClusterServing { serving: Arc::new(serving), settings }), layers))
}

struct ClusterServing {
    serving: Arc<dacapo_temporal::ClusterWorkers>,
    settings: Effective,
}

impl Serving for ClusterServing {
    fn settings(&self) -> Option<&Effective> {
        Some(&self.settings)
    }

    fn health(&self) -> Vec<(Name, Health)> {
        self.serving.health()
    }

    fn turn_threads(&self) -> (usize, usize) {
        self.serving.turn_threads()
    }

    fn runs_in_memory(&self) -> usize {
        self.serving.runs_in_memory()
    }

    fn evict_idle(&self) {
        self.serving.evict_idle();
    }

    fn check_open_runs(&self, progress: Played) -> Waiting<'_, Result<Vec<Unplayable>>> {
        Box::pin(async move { Ok(self.serving.check_open_runs(progress).await?) })
    }

    fn transcript(&self, history: RawHistory) -> Waiting<'_, Result<Transcript>> {
        let serving = self.serving.clone();
        Box::pin(async move { Ok(blocking(move || serving.transcript(&history.text)).await??) })
    }

    fn shut_down(&self) -> Waiting<'_, ShutdownReport> {
        Box::pin(async {
            let Report { took, asked_to_stop, cut_off, left, error } = self.serving.shut_down().await;
            ShutdownReport { took, asked_to_stop, cut_off, left, error }
        })
    }

    fn stop(&self) -> Waiting<'static, ()> {
        let serving = self.serving.clone();
        Box::pin(async move { serving.stop().await })
    }

    fn ends_by_itself(&self) -> Waiting<'_, String> {
        Box::pin(self.serving.ends_by_itself())
    }

    fn log_what_ends(&self) {
        self.serving.log_what_ends();
    }

    fn engine(&self) -> Option<&Engine> {
        None
    }
}
