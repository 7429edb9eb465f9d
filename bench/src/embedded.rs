//! Dacapo on a file, as any program would use it: with the settings it comes with.

use std::path::Path;

use anyhow::Result;
use dacapo::{App, Dacapo};
use dacapo_bench_meter::{Shape, System};

use crate::programs::{asked, chain, echo, fan, sleeper};

pub(crate) struct Embedded {
    pub(crate) app: App,
}

impl Embedded {
    pub(crate) async fn open(file: &Path) -> Result<Self> {
        let dacapo = Dacapo::open(&format!("sqlite:{}", file.display())).await?;
        Ok(Self { app: dacapo.serve((chain, fan, asked, sleeper, echo)).await? })
    }

    pub(crate) async fn close(&self) {
        self.app.clone().shutdown().await;
    }
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
