//! The shop over HTTP.

use std::time::Duration;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use dacapo::{App, Cursor, Description, Filter, Status, decode};
use serde::{Deserialize, Serialize};
use tower::limit::GlobalConcurrencyLimitLayer;

use crate::checkout::{CHECKOUT, Version, v2};
use crate::order::{CANCEL, CONFIRM, Cancel, Confirm, Outcome, Stage};
use crate::reply::Refusal;
use crate::stuck;

/// How long the service waits for a confirmation before it tells the customer to ask again.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the handlers share.
#[derive(Clone)]
struct Service {
    app: App,
    version: Version,
    patience: Duration,
}

type Reply<T> = Result<T, Refusal>;

/// All routes, over a program that serves this version of the checkout.
pub fn routes(app: App, version: Version) -> Router {
    routes_with(app, version, PATIENCE)
}

/// The same, with this much patience for confirmations.
pub fn routes_with(app: App, version: Version, patience: Duration) -> Router {
    Router::new()
        .route("/orders", post(place).get(list))
        .route("/orders/{id}", get(show))
        .route("/orders/{id}/cancel", post(cancel))
        .route("/orders/{id}/confirm", post(confirm))
        .route("/orders/{id}/history", get(history))
        .route("/stuck", get(stuck))
        .layer(GlobalConcurrencyLimitLayer::new(256))
        .with_state(Service { app, version, patience })
}

/// An order, for its customer.
#[derive(Debug, Serialize)]
struct View {
    id: String,
    status: String,
    stage: Option<Stage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending: Vec<Pending>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stuck: Option<String>,
}

/// A step that is being tried.
#[derive(Debug, Serialize)]
struct Pending {
    activity: String,
    attempt: u32,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<String>,
}

impl View {
    fn of(run: &Description) -> Self {
        let (outcome, error) = match &run.result {
            Some(Ok(result)) => (decode(result).ok(), None),
            Some(Err(failure)) => (None, Some(failure.to_string())),
            None => (None, None),
        };
        let pending = run.pending.iter().map(|activity| Pending {
            activity: activity.activity.to_string(),
            attempt: activity.attempt,
            attempts: activity.attempts,
            last_failure: activity.last_failure.as_ref().map(ToString::to_string),
        });
        Self {
            id: run.workflow_id.to_string(),
            status: run.status.to_string(),
            stage: run.published.as_ref().and_then(|stage| decode(stage).ok()),
            outcome,
            error,
            pending: pending.collect(),
            stuck: run.stuck.as_ref().map(|stuck| stuck.reason.clone()),
        }
    }
}

async fn place(
    State(service): State<Service>,
    headers: HeaderMap,
    order: Result<Json<v2::Order>, JsonRejection>,
) -> Reply<impl IntoResponse> {
    let order = body(order)?;
    if order.quantity == 0 {
        return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "an order of 0 pieces: order 1 or more"));
    }
    let request = match headers.get("idempotency-key").map(|key| key.to_str()) {
        Some(Ok(key)) => key.to_owned(),
        Some(Err(_)) => return Err(Refusal::new(StatusCode::BAD_REQUEST, "the idempotency-key is no text")),
        // Without a key of the customer's own, the order's id is one.
        None => format!("order {}", order.id),
    };
    let run = service.version.start(&service.app, order, &request).await?;
    let place = format!("/orders/{}", run.workflow_id());
    let view = View::of(&run.describe().await?);
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], Json(view)))
}

async fn show(State(service): State<Service>, Path(id): Path<String>) -> Reply<impl IntoResponse> {
    let run = service.app.handle_of::<Outcome>(id).describe().await?;
    Ok(Json(View::of(&run)))
}

async fn cancel(
    State(service): State<Service>,
    Path(id): Path<String>,
    cancel: Result<Json<Cancel>, JsonRejection>,
) -> Reply<impl IntoResponse> {
    let cancel = body(cancel)?;
    service.app.handle_of::<Outcome>(id).signal(CANCEL, cancel).await?;
    // The signal is durable; the order takes it at its next wait for it.
    Ok(StatusCode::ACCEPTED)
}

/// What a confirmation is answered with.
#[derive(Serialize)]
struct Confirmed {
    confirmed: String,
}

async fn confirm(
    State(service): State<Service>,
    Path(id): Path<String>,
    confirm: Result<Json<Confirm>, JsonRejection>,
) -> Reply<impl IntoResponse> {
    let confirm = body(confirm)?;
    let run = service.app.handle_of::<Outcome>(id);
    let answer = tokio::time::timeout(service.patience, run.update(CONFIRM, confirm)).await;
    match answer {
        Ok(answer) => Ok(Json(Confirmed { confirmed: answer? })),
        Err(_) => {
            let stuck = run.describe().await?.stuck.map(|stuck| format!(": {}", stuck.reason)).unwrap_or_default();
            let message = format!("the confirmation is noted, and the order has not taken it yet{stuck}");
            Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message))
        }
    }
}

async fn history(State(service): State<Service>, Path(id): Path<String>) -> Reply<String> {
    Ok(service.app.handle_of::<Outcome>(id).transcript().await?.to_text())
}

async fn stuck(State(service): State<Service>) -> Reply<String> {
    Ok(stuck::report(&service.app.runs()).await?)
}

/// Which orders to list.
#[derive(Debug, Deserialize)]
struct Wanted {
    status: Option<String>,
    limit: Option<usize>,
    after: Option<Cursor>,
}

/// Some orders, newest first.
#[derive(Serialize)]
struct Listed {
    orders: Vec<View>,
    /// What to say as `after` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Cursor>,
}

async fn list(State(service): State<Service>, Query(wanted): Query<Wanted>) -> Reply<impl IntoResponse> {
    let mut filter = Filter::all().workflow(CHECKOUT);
    if let Some(status) = &wanted.status {
        filter = filter.status(status_named(status)?);
    }
    let limit = wanted.limit.unwrap_or(50).min(1_000);
    let runs = service.app.runs();
    let page = match wanted.after {
        None => runs.list(&filter, limit).await?,
        Some(after) => runs.list_from(&filter, after, limit).await?,
    };
    let orders = page.runs.iter().map(View::of).collect();
    Ok(Json(Listed { orders, next: page.next }))
}

fn status_named(name: &str) -> Reply<Status> {
    let plain = name.replace('_', " ");
    Status::ALL.into_iter().find(|status| status.to_string() == plain).ok_or_else(|| {
        let known = Status::ALL.map(|status| status.to_string().replace(' ', "_")).join(", ");
        Refusal::new(StatusCode::BAD_REQUEST, format!("there is no status {name:?}: say one of {known}"))
    })
}

fn body<T>(body: Result<Json<T>, JsonRejection>) -> Reply<T> {
    body.map(|Json(value)| value).map_err(|rejection| Refusal::new(rejection.status(), rejection.body_text()))
}
