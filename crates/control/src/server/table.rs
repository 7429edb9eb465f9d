//! The paths that make calls. The table is the source of the document for OpenAPI as well.

use dacapo_client::{
    ClientCall as Call, CompleteActivity, Cursor, Filter, GroupBy, PollUpdate, QueryRun, ResolvePromise, RunRef,
    SendSignal, SendUpdate, StartRun, Status,
};
use dacapo_core::Name;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::problem::Problem;

/// The runs or events of a page, unless the request asks for another number.
const PAGE: usize = 50;
/// The most of them.
const MAX_PAGE: usize = 1_000;

/// A path, and the call that it makes.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// For people.
    pub(super) summary: &'static str,
    /// The type of the body, if it has one.
    pub(super) body: Option<&'static str>,
    /// The parameters of the query.
    pub(super) query: &'static [&'static str],
    /// The call that is made, from the ids of the path, the query and the body.
    pub(super) make: fn(&Asked<'_>) -> Result<Call, Problem>,
}

/// A request for a call.
pub(super) struct Asked<'a> {
    pub(super) workflow_id: Option<String>,
    pub(super) query: Parameters,
    pub(super) body: &'a [u8],
}

/// Everything that a query can say.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Parameters {
    run_id: Option<Name>,
    search: Option<String>,
    status: Option<Status>,
    workflow: Option<Name>,
    workflow_id: Option<Name>,
    stuck: bool,
    after: Option<String>,
    limit: Option<usize>,
    by: Option<GroupBy>,
}

/// The reason that goes with a change.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Reason {
    reason: String,
}

/// The turn from which a run starts again.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reset {
    turn: u64,
    #[serde(default)]
    reason: String,
}

const OF_RUN: &[&str] = &["run_id"];
const OF_LIST: &[&str] = &["search", "status", "workflow", "workflow_id", "stuck", "after", "limit"];
const OF_COUNTS: &[&str] = &["search", "status", "workflow", "workflow_id", "stuck", "by"];
const OF_HISTORY: &[&str] = &["run_id", "after", "limit"];

macro_rules! route {
    ($method:literal $path:literal, $summary:literal, $body:expr, $query:expr, $make:expr) => {
        Route { method: $method, path: $path, summary: $summary, body: $body, query: $query, make: $make }
    };
}

pub(super) const ROUTES: &[Route] = &[
    route!("GET" "/runs", "List runs.", None, OF_LIST, |asked| {
        Ok(Call::List(asked.filter()?, asked.after(), asked.limit()?))
    }),
    route!("POST" "/runs", "Start a run.", Some("StartRun"), &[], |asked| Ok(Call::Start(asked.body::<StartRun>()?))),
    route!("GET" "/counts", "Count runs, each group up to 10,000.", None, OF_COUNTS, |asked| {
        Ok(Call::Counts(asked.filter()?, asked.query.by))
    }),
    route!("GET" "/stuck", "Group stuck runs by cause.", None, &[], |_| Ok(Call::StuckRuns)),
    route!("GET" "/nodes", "List the processes that serve.", None, &[], |_| Ok(Call::Nodes)),
    route!("GET" "/runs/{workflow_id}", "Describe a run.", None, OF_RUN, |asked| Ok(Call::Describe(asked.run()?))),
    route!("DELETE" "/runs/{workflow_id}", "Delete a closed run.", None, OF_RUN, |asked| Ok(Call::Delete(asked.run()?))),
    route!("GET" "/runs/{workflow_id}/history", "Read what happened in a run.", None, OF_HISTORY, |asked| {
        Ok(Call::History(asked.run()?, asked.after(), asked.limit()?))
    }),
    route!("GET" "/runs/{workflow_id}/raw-history", "Read the history as the backend keeps it.", None, OF_RUN, |asked| {
        Ok(Call::RawHistory(asked.run()?))
    }),
    route!("GET" "/runs/{workflow_id}/inspection", "Say what each unit waits for, and where.", None, OF_RUN, |asked| {
        Ok(Call::Inspect(asked.run()?))
    }),
    route!("GET" "/runs/{workflow_id}/published", "Read the snapshot that the run published last.", None, OF_RUN, |asked| {
        Ok(Call::Published(asked.run()?))
    }),
    route!("GET" "/runs/{workflow_id}/result", "Wait for the result.", None, OF_RUN, |asked| Ok(Call::RunResult(asked.run()?))),
    route!("POST" "/runs/{workflow_id}/signals", "Send a signal.", Some("SendSignal"), OF_RUN, |asked| {
        Ok(Call::Signal(asked.run()?, asked.body::<SendSignal>()?))
    }),
    route!("POST" "/runs/{workflow_id}/queries", "Ask a question.", Some("QueryRun"), OF_RUN, |asked| {
        Ok(Call::Query(asked.run()?, asked.body::<QueryRun>()?))
    }),
    route!("POST" "/runs/{workflow_id}/updates", "Send an update and wait for it.", Some("SendUpdate"), OF_RUN, |asked| {
        Ok(Call::Update(asked.run()?, asked.body::<SendUpdate>()?))
    }),
    route!("POST" "/runs/{workflow_id}/update-results", "Wait for an update.", Some("PollUpdate"), OF_RUN, |asked| {
        Ok(Call::UpdateResult(asked.run()?, asked.body::<PollUpdate>()?))
    }),
    route!("POST" "/runs/{workflow_id}/cancel", "Ask the run to cancel itself.", Some("Reason"), OF_RUN, |asked| {
        Ok(Call::Cancel(asked.run()?, asked.body::<Reason>()?.reason))
    }),
    route!("POST" "/runs/{workflow_id}/terminate", "End the run at once.", Some("Reason"), OF_RUN, |asked| {
        Ok(Call::Terminate(asked.run()?, asked.body::<Reason>()?.reason))
    }),
    route!("POST" "/runs/{workflow_id}/reset", "Start again from a turn, as a new run.", Some("Reset"), OF_RUN, |asked| {
        let Reset { turn, reason } = asked.body()?;
        Ok(Call::Reset(asked.run()?, turn, reason))
    }),
    route!("POST" "/runs/{workflow_id}/release", "Release a quarantined run.", None, OF_RUN, |asked| {
        Ok(Call::Release(asked.run()?))
    }),
    route!("POST" "/runs/{workflow_id}/promises", "Resolve or reject a promise.", Some("ResolvePromise"), OF_RUN, |asked| {
        Ok(Call::ResolvePromise(asked.run()?, asked.body::<ResolvePromise>()?))
    }),
    route!("POST" "/runs/{workflow_id}/activities", "Complete a pending activity.", Some("CompleteActivity"), OF_RUN, |asked| {
        Ok(Call::CompleteActivity(asked.run()?, asked.body::<CompleteActivity>()?))
    }),
];

impl Asked<'_> {
    fn run(&self) -> Result<RunRef, Problem> {
        let workflow_id = self.workflow_id.clone().unwrap_or_default();
        if workflow_id.is_empty() {
            return Err(Problem::invalid("the path has no workflow id"));
        }
        Ok(match &self.query.run_id {
            Some(run_id) => RunRef::exact(workflow_id, run_id.clone()),
            None => RunRef::latest(workflow_id),
        })
    }

    fn filter(&self) -> Result<Filter, Problem> {
        let Parameters { search, status, workflow, workflow_id, stuck, .. } = &self.query;
        let search = match search.as_deref().filter(|text| !text.trim().is_empty()) {
            Some(text) => Some(text.parse().map_err(|error| Problem::invalid(format!("{error}")))?),
            None => None,
        };
        let (workflow, workflow_id) = (workflow.clone(), workflow_id.clone());
        Ok(Filter { search, status: *status, workflow, workflow_id, stuck: *stuck, ..Filter::default() })
    }

    fn after(&self) -> Option<Cursor> {
        self.query.after.clone().map(Cursor)
    }

    fn limit(&self) -> Result<usize, Problem> {
        match self.query.limit.unwrap_or(PAGE) {
            limit @ 1..=MAX_PAGE => Ok(limit),
            other => Err(Problem::invalid(format!("a page has 1 to {MAX_PAGE} items, not {other}"))),
        }
    }

    /// An empty body is one without members.
    fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let body = if self.body.is_empty() { b"{}" } else { self.body };
        serde_json::from_slice(body).map_err(|error| Problem::invalid(format!("the body cannot be read: {error}")))
    }
}
