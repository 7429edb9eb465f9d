//! What is refused before anything is done: pages of other sites, other names of the server, callers without a token.

use dacapo_client::{RunRef, Status};
use hyper::StatusCode;

use crate::served::{OPERATE, READ, Served};

const CHANGES: [(&str, &str, &str); 5] = [
    ("POST", "/api/v1/runs", r#"{"workflow":"order","workflow_id":"x","input":["1"]}"#),
    ("POST", "/api/v1/runs/order-1/terminate", "{}"),
    ("POST", "/api/v1/runs/order-1/signals", r#"{"name":"paid","input":["3"]}"#),
    ("DELETE", "/api/v1/runs/order-1", ""),
    ("POST", "/api/v1/call", r#"{"call":"terminate","with":[{"workflow_id":"order-1"},"x"]}"#),
];

/// Sends every change with these headers beside a token and a content type, and expects this status each time and no change.
async fn all_are_refused(headers: &[(&str, &str)], status: StatusCode) {
    let served = Served::new().await;
    served.start("order-1", 3).await;
    let authorization = format!("Bearer {OPERATE}");
    let has = |name: &str| headers.iter().any(|(other, _)| *other == name);
    let mut sent = headers.to_vec();
    if !has("authorization") {
        sent.push(("authorization", &authorization));
    }
    if !has("content-type") {
        sent.push(("content-type", "application/json"));
    }
    for (method, path, body) in CHANGES {
        let (found, text) = served.raw(method, path, &sent, body).await;
        assert_eq!(found, status, "{method} {path} with {headers:?}: {text}");
    }
    let runs = served.app.runs();
    assert_eq!(runs.count(&dacapo::Filter::all()).await.unwrap(), 1);
    let run = served.app.client().describe(RunRef::latest("order-1")).await.unwrap();
    assert_eq!((run.status, run.turns), (Status::Open, run.turns));
}

#[tokio::test]
async fn page_of_another_site_changes_nothing() {
    for headers in [
        [("origin", "https://evil.example")],
        [("origin", "null")],
        [("origin", "http://127.0.0.1")],
        [("sec-fetch-site", "cross-site")],
        [("sec-fetch-site", "same-site")],
    ] {
        all_are_refused(&headers, StatusCode::FORBIDDEN).await;
    }
}

#[tokio::test]
async fn form_of_another_page_changes_nothing() {
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        all_are_refused(&[("content-type", kind)], StatusCode::UNSUPPORTED_MEDIA_TYPE).await;
    }
}

#[tokio::test]
async fn name_that_was_resolved_to_this_server_by_another_changes_nothing() {
    for host in ["evil.example", "evil.example:7070", "127.0.0.1.evil.example", "localhost.evil.example:80"] {
        all_are_refused(&[("host", host)], StatusCode::MISDIRECTED_REQUEST).await;
    }
}

#[tokio::test]
async fn token_that_may_read_changes_nothing() {
    all_are_refused(&[("authorization", &format!("Bearer {READ}"))], StatusCode::FORBIDDEN).await;
}

#[tokio::test]
async fn caller_without_a_token_changes_and_reads_nothing() {
    for sent in ["", "Bearer", "Bearer wrong", "Basic b3BlcmF0ZQ=="] {
        all_are_refused(&[("authorization", sent)], StatusCode::UNAUTHORIZED).await;
    }
    let served = Served::new().await;
    for path in [
        "/api/v1/capabilities",
        "/api/v1/runs",
        "/api/v1/events",
        "/api/v1/stuck",
        "/metrics",
        "/api/v1/runs/x/history",
    ] {
        assert_eq!(served.raw("GET", path, &[], "").await.0, StatusCode::UNAUTHORIZED, "{path}");
    }
}

#[tokio::test]
async fn page_of_the_server_itself_may_call_it_and_nothing_keeps_the_answer() {
    let served = Served::new().await;
    let (origin, authorization) = (format!("http://{}", served.address), format!("Bearer {READ}"));
    let headers =
        [("origin", origin.as_str()), ("sec-fetch-site", "same-origin"), ("authorization", authorization.as_str())];
    let response = served.response("GET", "/api/v1/runs", &headers, "").await;
    assert_eq!(response.status(), StatusCode::OK);
    for (name, value) in
        [("cache-control", "no-store"), ("x-frame-options", "DENY"), ("x-content-type-options", "nosniff")]
    {
        assert_eq!(response.headers()[name], value);
    }
    assert!(!response.headers().contains_key("access-control-allow-origin"));
}
