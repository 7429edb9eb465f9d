//! Live views: server-sent events, one for each change that is seen.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use dacapo_client::{ClientCall, ClientReply, Filter, RunRef};
use dacapo_core::Name;
use futures::Stream;
use futures::stream::unfold;
use serde::Deserialize;

use super::guard::Caller;
use super::problem::Problem;
use super::{Control, call};

/// How often a view looks for a change. Each look reads one run or one page.
const PAUSE: Duration = Duration::from_millis(500);
/// The runs of the list.
const PAGE: usize = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfRun {
    run_id: Option<Name>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfList {
    #[serde(default)]
    search: String,
}

/// The description of a run, now and after each change, until the run is closed.
pub(super) async fn of_run(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    Path(workflow_id): Path<String>,
    Query(of): Query<OfRun>,
) -> Response {
    let run = match of.run_id {
        Some(run_id) => RunRef::exact(workflow_id, run_id),
        None => RunRef::latest(workflow_id),
    };
    let is_last = |reply: &ClientReply| matches!(reply, ClientReply::Description(run) if !run.status.is_open());
    view(control, caller, ClientCall::Describe(run), "run", is_last).await
}

/// The first page of a list, now and after each change.
pub(super) async fn of_list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    Query(of): Query<OfList>,
) -> Response {
    let search = match of.search.trim() {
        "" => None,
        text => match text.parse() {
            Ok(search) => Some(search),
            Err(error) => return Problem::invalid(format!("{error}")).into_response(),
        },
    };
    let filter = Filter { search, ..Filter::default() };
    view(control, caller, ClientCall::List(filter, None, PAGE), "runs", |_| false).await
}

/// Answers with the error of the first look, or with a stream.
async fn view(
    control: Arc<Control>,
    caller: Caller,
    asked: ClientCall,
    name: &'static str,
    is_last: fn(&ClientReply) -> bool,
) -> Response {
    match call::make(&control, &caller, asked.clone()).await {
        Ok(first) => {
            let look = View { control, caller, asked, name, is_last, next: Some(first), shown: None };
            Sse::new(look.events()).keep_alive(KeepAlive::default()).into_response()
        }
        Err(problem) => problem.into_response(),
    }
}

struct View {
    control: Arc<Control>,
    caller: Caller,
    asked: ClientCall,
    name: &'static str,
    is_last: fn(&ClientReply) -> bool,
    /// The reply that is yet to be shown.
    next: Option<ClientReply>,
    shown: Option<ClientReply>,
}

impl View {
    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        unfold(Some(self), |view| async {
            let mut view = view?;
            loop {
                if let Some(reply) = view.next.take().filter(|reply| view.shown.as_ref() != Some(reply)) {
                    let event = event(view.name, &reply);
                    let goes_on = !(view.is_last)(&reply);
                    view.shown = Some(reply);
                    return Some((Ok(event), goes_on.then_some(view)));
                }
                tokio::time::sleep(PAUSE).await;
                match call::make(&view.control, &view.caller, view.asked.clone()).await {
                    Ok(reply) => view.next = Some(reply),
                    Err(problem) => {
                        let told = serde_json::to_string(&problem).unwrap_or_default();
                        return Some((Ok(Event::default().event("problem").data(told)), None));
                    }
                }
            }
        })
    }
}

fn event(name: &str, reply: &ClientReply) -> Event {
    let value = serde_json::to_value(reply).unwrap_or_default();
    Event::default().event(name).data(value.get("with").unwrap_or(&value).to_string())
}
