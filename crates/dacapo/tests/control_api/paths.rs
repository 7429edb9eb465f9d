//! The paths, as people and other programs call them.

use std::time::Duration;

use dacapo_control::open_api;
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use serde_json::json;

use crate::served::{OPERATE, Served};

#[tokio::test]
async fn runs_are_listed_described_changed_and_deleted_by_path() {
    let served = Served::new().await;
    let start =
        r#"{"workflow":"order","workflow_id":"a b/ö","input":["5"],"attributes":{"customer":{"keyword":"ada"}}}"#;
    let (status, started) = served.call("POST", "/api/v1/runs", start).await;
    assert_eq!((status, &started["is_new"]), (StatusCode::OK, &json!(true)));
    served.start("order-2", 3).await;
    let path = "/api/v1/runs/a%20b%2F%C3%B6";
    assert_eq!(served.call("GET", path, "").await.1["workflow_id"], "a b/ö");
    let found = served.call("GET", "/api/v1/runs?search=customer%20%3D%20'ada'", "").await.1;
    assert_eq!((found["runs"].as_array().unwrap().len(), &found["runs"][0]["workflow_id"]), (1, &json!("a b/ö")));
    let page = served.call("GET", "/api/v1/runs?limit=1", "").await.1;
    let next = page["next"].as_str().unwrap();
    assert_eq!(
        served.call("GET", &format!("/api/v1/runs?limit=1&after={next}"), "").await.1["runs"][0]["workflow_id"],
        "a b/ö"
    );
    let counts = served.call("GET", "/api/v1/counts?by=workflow", "").await.1;
    assert_eq!(counts, json!([{ "group": "order", "runs": 2, "is_capped": false }]));
    let inspection = served.call("GET", &format!("{path}/inspection"), "").await.1;
    assert!(inspection.to_string().contains("paid"), "{inspection}");
    assert_eq!(served.call("POST", &format!("{path}/queries"), r#"{"name":"owed"}"#).await.1, json!("5"));
    assert_eq!(
        served.call("POST", &format!("{path}/signals"), r#"{"name":"paid","input":["2"]}"#).await.0,
        StatusCode::OK
    );
    assert_eq!(served.call("POST", &format!("{path}/terminate"), r#"{"reason":"enough"}"#).await.0, StatusCode::OK);
    assert_eq!(served.call("GET", &format!("{path}/result"), "").await.1["status"], "terminated");
    assert_eq!(served.call("GET", &format!("{path}/history"), "").await.0, StatusCode::OK);
    assert_eq!(served.call("DELETE", path, "").await.0, StatusCode::OK);
    assert_eq!(served.call("GET", path, "").await.0, StatusCode::NOT_FOUND);
    assert_eq!(served.call("GET", "/api/v1/nodes", "").await.0, StatusCode::OK);
    assert_eq!(served.call("GET", "/api/v1/stuck", "").await.1, json!([]));
}

#[tokio::test]
async fn bad_requests_say_what_is_wrong() {
    let served = Served::new().await;
    served.start("order-1", 3).await;
    let bad = [
        ("GET", "/api/v1/runs?search=customer%20%3D%20ada", "", 400, "at column 12"),
        ("GET", "/api/v1/runs?limit=0", "", 400, "a page has 1 to 1000 items, not 0"),
        ("GET", "/api/v1/runs?colour=red", "", 400, "colour"),
        ("GET", "/api/v1/runs?status=done", "", 400, "does not know"),
        ("GET", "/api/v1/runs?after=here", "", 400, "invalid cursor"),
        ("GET", "/api/v1/runs/order-9", "", 404, "there is no run of workflow id"),
        ("POST", "/api/v1/runs", "{", 400, "the body cannot be read"),
        ("POST", "/api/v1/runs", r#"{"workflow":"none","workflow_id":"x"}"#, 400, "no workflow \"none\" is registered"),
        ("POST", "/api/v1/runs/order-1/reset", "{}", 400, "missing field `turn`"),
        ("POST", "/api/v1/runs/order-1/cancel", r#"{"because":"x"}"#, 400, "unknown field `because`"),
        ("DELETE", "/api/v1/runs/order-1", "", 409, "the run is open"),
        (
            "POST",
            "/api/v1/runs/order-1/signals",
            r#"{"name":"paid","input":[5]}"#,
            400,
            r#"payloads are JSON in a text, as in "5""#,
        ),
        ("POST", "/api/v1/call", r#"{"call":"explode"}"#, 400, "the call cannot be read"),
        ("GET", "/api/v2/runs", "", 404, "there is no GET /api/v2/runs"),
    ];
    for (method, path, body, status, detail) in bad {
        let (found, problem) = served.call(method, path, body).await;
        assert_eq!(found.as_u16(), status, "{method} {path}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(detail), "{method} {path}: {problem}");
    }
}

#[tokio::test]
async fn live_view_shows_each_change_until_the_run_is_closed() {
    let served = Served::new().await;
    served.start("order-1", 3).await;
    let authorization = format!("Bearer {OPERATE}");
    let headers = [("authorization", authorization.as_str())];
    let response = served.response("GET", "/api/v1/runs/order-1/events", &headers, "").await;
    let mut body = response.into_body();
    let mut seen = String::new();
    let mut paid = false;
    loop {
        let frame = tokio::time::timeout(Duration::from_secs(60), body.frame()).await.expect("a change is shown");
        let Some(frame) = frame else { break };
        seen.push_str(std::str::from_utf8(frame.unwrap().data_ref().map_or(&[][..], |data| data)).unwrap());
        if !paid && seen.contains("\"status\":\"open\"") {
            paid = true;
            served.call("POST", "/api/v1/runs/order-1/signals", r#"{"name":"paid","input":["3"]}"#).await;
        }
    }
    assert!(seen.contains("event: run") && seen.contains("\"status\":\"completed\""), "{seen}");
}

#[tokio::test]
async fn those_who_watch_the_process_need_no_token_but_for_its_metrics() {
    let served = Served::new().await;
    assert_eq!(served.raw("GET", "/healthz", &[], "").await, (StatusCode::OK, "ok\n".to_owned()));
    assert_eq!(served.raw("GET", "/readyz", &[], "").await.0, StatusCode::OK);
    assert_eq!(served.raw("GET", "/metrics", &[], "").await.0, StatusCode::UNAUTHORIZED);
    let authorization = format!("Bearer {OPERATE}");
    let metrics = served.raw("GET", "/metrics", &[("authorization", authorization.as_str())], "").await;
    assert_eq!(metrics, (StatusCode::OK, "runs 1\n".to_owned()));
}

/// `UPDATE_EXPECT=1` writes the file.
#[test]
fn document_of_the_paths_is_the_one_in_the_tree() {
    let document = serde_json::to_string_pretty(&open_api()).unwrap() + "\n";
    expect_test::expect_file!["../../../control/openapi.json"].assert_eq(&document);
}
