//! Dacapo on a file or a database, as any program would use it: with the settings it comes with.

use std::path::Path;

use anyhow::Result;
use dacapo::{App, Dacapo};
use dacapo_bench_meter::{Shape, System, new_schema};

use crate::programs::{asked, chain, echo, fan, sleeper};

pub(crate) struct Embedded {
    pub(crate) app: App,
}

impl Embedded {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let dacapo = Dacapo::open(url).await?;
        Ok(Self { app: dacapo.serve((chain, fan, asked, sleeper, echo)).await? })
    }

    pub(crate) async fn close(&self) {
        self.app.clone().shutdown().await;
    }
}

/// Returns the URL of a file.
pub(crate) fn file_url(file: &Path) -> String {
    format!("sqlite:{}", file.display())
}

/// Returns the URL of a schema of a database that is not there yet.
pub(crate) fn new_schema_url(database: &str, workload: &str) -> String {
    with_setting(database, &format!("schema={}", new_schema(workload)))
}

/// Adds a setting to a URL.
pub(crate) fn with_setting(url: &str, setting: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}{setting}")
}

impl System for Embedded {
    fn name(&self) -> &'static str {
        "dacapo"
    }

    async fn run(&self, shape: Shape, id: String, payload: String) -> Result<String> {
        let run = match shape {
            Shape::Chain(activities) => self.app.start(chain, (activities, payload)).id(id).await?,
            Shape::Fan(activities) => self.app.start(fan, (activities, payload)).id(id).await?,
        };
        Ok(run.result().await?)
    }

    async fn start_sleeper(&self, id: String, payload: String) -> Result<()> {
        self.app.start(sleeper, payload).id(id).await?;
        Ok(())
    }
}
