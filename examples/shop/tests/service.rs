//! The shop over HTTP: every route, and what it says to bad input.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use dacapo::prelude::*;
use dacapo_shop::checkout::Version;
use dacapo_shop::service;
use dacapo_shop::shop::Shop;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

/// A shop with its own database and orders in a file beside it.
struct Site {
    folder: TempDir,
    shop: Arc<Shop>,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shop = Shop::open(folder.path().join("shop.db").to_str().unwrap()).unwrap();
        shop.stock("violin", 10).unwrap();
        Self { folder, shop }
    }

    fn file(&self) -> String {
        self.folder.path().join("orders.db").to_str().unwrap().to_owned()
    }

    async fn open(&self, version: Version) -> Server {
        let store = Dacapo::open(&format!("sqlite:{}", self.file())).await.unwrap();
        let app = version.serve(store, self.shop.clone()).await.unwrap();
        let routes = service::routes_with(app.clone(), version, millis(300));
        Server { app, routes }
    }
}

/// A program that serves, and its routes.
struct Server {
    app: App,
    routes: Router,
}

impl Server {
    async fn ask(&self, request: Request<Body>) -> (StatusCode, String) {
        let response = self.routes.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        (parts.status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        self.ask(Request::get(path).body(Body::empty()).unwrap()).await
    }

    async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.post_as(path, body, &[]).await
    }

    async fn post_as(&self, path: &str, body: Value, headers: &[(&str, &str)]) -> (StatusCode, Value) {
        let request = Request::post(path).header("content-type", "application/json");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let (code, text) = self.ask(request.body(Body::from(body.to_string())).unwrap()).await;
        (code, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    async fn order(&self, id: &str) -> Value {
        let (code, text) = self.get(&format!("/orders/{id}")).await;
        assert_eq!(code, StatusCode::OK, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Looks at an order until it is so.
    async fn until(&self, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + secs(20);
        loop {
            let order = self.order(id).await;
            if is_so(&order) {
                return order;
            }
            assert!(Instant::now() < deadline, "order {id} never came to it: {order:#}");
            tokio::task::yield_now().await;
        }
    }

    async fn until_stage(&self, id: &str, stage: &str) -> Value {
        self.until(id, |order| order["stage"] == stage).await
    }
}

fn order(id: &str, card: &str) -> Value {
    json!({ "id": id, "sku": "violin", "quantity": 2, "cents": 129_900, "card": card })
}

fn error(answer: &Value) -> &str {
    answer["error"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test]
async fn an_order_is_placed_confirmed_and_shipped() {
    let site = Site::new();
    let server = site.open(Version::V4).await;
    let (code, placed) = server.post("/orders", order("o-1", "visa")).await;
    assert_eq!((code, &placed["id"], &placed["status"]), (StatusCode::CREATED, &json!("o-1"), &json!("open")));
    let waiting = server.until_stage("o-1", "confirming").await;
    assert_eq!(waiting, json!({ "id": "o-1", "status": "open", "stage": "confirming" }));
    assert_eq!((site.shop.left("violin"), site.shop.charges()), (Ok(8), Ok((1, 0))));

    let (code, answer) = server.post("/orders/o-1/confirm", json!({ "by": "ada" })).await;
    assert_eq!((code, answer), (StatusCode::OK, json!({ "confirmed": "confirmed by ada" })));
    let closed = server.until("o-1", |order| order["status"] != "open").await;
    let outcome = json!({ "outcome": "shipped", "parcel": "parcel-o-1", "points": 1_299 });
    assert_eq!(closed, json!({ "id": "o-1", "status": "completed", "stage": "closed", "outcome": outcome }));

    let (code, history) = server.get("/orders/o-1/history").await;
    assert_eq!(code, StatusCode::OK);
    for told in ["Shop::reserve", "Shop::screen", "reference", "Shop::charge", "confirm", "Shop::ship", "shop-v4"] {
        assert!(history.contains(told), "{told} is not told in {history}");
    }
}

#[tokio::test]
async fn order_placed_twice_is_one_order() {
    let site = Site::new();
    let server = site.open(Version::V4).await;
    for _ in 0..3 {
        assert_eq!(server.post("/orders", order("o-1", "visa")).await.0, StatusCode::CREATED);
    }
    server.until_stage("o-1", "confirming").await;
    assert_eq!((site.shop.left("violin"), site.shop.charges()), (Ok(8), Ok((1, 0))));

    let another = [("idempotency-key", "another request")];
    let (code, answer) = server.post_as("/orders", order("o-1", "visa"), &another).await;
    assert_eq!(code, StatusCode::CONFLICT);
    assert!(error(&answer).contains(r#"workflow id "o-1" is in use"#), "{answer}");

    server.post("/orders/o-1/cancel", json!({ "reason": "too loud" })).await;
    server.until("o-1", |order| order["status"] == "completed").await;
    let (code, answer) = server.post_as("/orders", order("o-1", "visa"), &another).await;
    assert_eq!(code, StatusCode::CONFLICT);
    assert!(error(&answer).contains("was used by run"), "{answer}");
    assert_eq!(server.post("/orders", order("o-1", "visa")).await.0, StatusCode::CREATED, "the first request, again");

    let (code, answer) = server.post_as("/orders", order("o-2", "visa"), &[("idempotency-key", "order o-1")]).await;
    assert_eq!(code, StatusCode::CONFLICT, "the key of another order: {answer}");
}

#[tokio::test]
async fn an_order_that_is_cancelled_gives_back_stock_and_money() {
    let site = Site::new();
    let server = site.open(Version::V1).await;
    server.post("/orders", order("o-1", "visa")).await;
    let (code, _) = server.post("/orders/o-1/cancel", json!({ "reason": "too loud" })).await;
    assert_eq!(code, StatusCode::ACCEPTED);
    let closed = server.until("o-1", |order| order["status"] != "open").await;
    assert_eq!(closed["outcome"], json!({ "outcome": "cancelled", "reason": "too loud" }));
    assert_eq!((site.shop.left("violin"), site.shop.charges()), (Ok(10), Ok((1, 1))));
    let (code, answer) = server.post("/orders/o-1/cancel", json!({ "reason": "again" })).await;
    assert_eq!(code, StatusCode::CONFLICT);
    assert!(error(&answer).contains("is completed and accepts nothing more"), "{answer}");
}

#[tokio::test]
async fn an_order_that_cannot_be_paid_or_filled_is_declined() {
    let site = Site::new();
    let server = site.open(Version::V4).await;
    let many = json!({ "id": "many", "sku": "violin", "quantity": 11, "cents": 1, "card": "visa" });
    server.post("/orders", many).await;
    server.post("/orders", order("broke", "declined")).await;
    server.post("/orders", order("thief", "stolen")).await;
    for (id, reason) in [
        ("many", "there are no 11 pieces of \"violin\" left"),
        ("broke", "the bank declined the card"),
        ("thief", "the card was reported stolen"),
    ] {
        let closed = server.until(id, |order| order["status"] != "open").await;
        assert_eq!(closed["outcome"], json!({ "outcome": "declined", "reason": reason }));
    }
    assert_eq!((site.shop.left("violin"), site.shop.charges()), (Ok(10), Ok((0, 0))));
}

#[tokio::test]
async fn a_bank_that_does_not_answer_is_asked_again() {
    let site = Site::new();
    let server = site.open(Version::V2).await;
    site.shop.open_bank(false);
    server.post("/orders", order("o-1", "flaky")).await;
    let trying = server.until("o-1", |order| order["pending"][0]["attempt"].as_u64() > Some(1)).await;
    let pending = &trying["pending"][0];
    assert_eq!((&trying["stage"], &pending["activity"]), (&json!("charging"), &json!("Shop::charge")));
    assert_eq!((&pending["attempts"], &pending["last_failure"]), (&json!(8), &json!("the bank does not answer")));

    let (code, answer) = server.post("/orders/o-1/confirm", json!({ "by": "ada" })).await;
    assert_eq!(code, StatusCode::CONFLICT, "too early: nothing is charged yet");
    assert!(error(&answer).contains(r#"no handler for update "confirm""#), "{answer}");

    site.shop.open_bank(true);
    server.until_stage("o-1", "confirming").await;
    assert_eq!(server.post("/orders/o-1/confirm", json!({ "by": "ada" })).await.0, StatusCode::OK);
}

#[tokio::test]
async fn orders_are_listed_by_status_page_by_page() {
    let site = Site::new();
    let server = site.open(Version::V4).await;
    for n in 0..5 {
        server.post("/orders", order(&format!("o-{n}"), "declined")).await;
        server.until(&format!("o-{n}"), |order| order["status"] == "completed").await;
    }
    server.post("/orders", order("open", "visa")).await;
    let ids = |page: &Value| -> Vec<String> {
        let orders = page["orders"].as_array().unwrap();
        orders.iter().map(|order| order["id"].as_str().unwrap().to_owned()).collect()
    };
    let page = async |path: String| -> Value { serde_json::from_str(&server.get(&path).await.1).unwrap() };

    let open = page("/orders?status=open".to_owned()).await;
    assert_eq!((ids(&open), &open["next"]), (vec!["open".to_owned()], &Value::Null));
    let first = page("/orders?status=completed&limit=3".to_owned()).await;
    assert_eq!(ids(&first), ["o-4", "o-3", "o-2"]);
    let next = first["next"].as_str().expect("there is more");
    let second = page(format!("/orders?status=completed&limit=3&after={next}")).await;
    assert_eq!((ids(&second), &second["next"]), (vec!["o-1".to_owned(), "o-0".to_owned()], &Value::Null));
    assert_eq!(ids(&page("/orders".to_owned()).await).len(), 6);
}

#[tokio::test]
async fn bad_input_is_refused_with_a_reason() {
    let site = Site::new();
    let server = site.open(Version::V4).await;
    let nothing = json!({ "id": "o-1", "sku": "violin", "quantity": 0, "cents": 1, "card": "visa" });
    for (path, body, code, reason) in [
        ("/orders", json!({ "id": "o-1" }), StatusCode::UNPROCESSABLE_ENTITY, "missing field `sku`"),
        ("/orders", nothing, StatusCode::UNPROCESSABLE_ENTITY, "order 1 or more"),
        ("/orders", order("", "visa"), StatusCode::BAD_REQUEST, "workflow id is empty"),
        ("/orders", order("o\n1", "visa"), StatusCode::BAD_REQUEST, "control characters"),
        ("/orders", order(&"o".repeat(1_001), "visa"), StatusCode::BAD_REQUEST, "at most 1,000 are allowed"),
        ("/orders", order("o-1", &"9".repeat(2 << 20)), StatusCode::PAYLOAD_TOO_LARGE, "length limit exceeded"),
        ("/orders/absent/cancel", json!({ "reason": "" }), StatusCode::NOT_FOUND, r#"no run of workflow id "absent""#),
        ("/orders/absent/cancel", json!({}), StatusCode::UNPROCESSABLE_ENTITY, "missing field `reason`"),
        ("/orders/absent/confirm", json!({ "by": "a" }), StatusCode::NOT_FOUND, r#"no run of workflow id "absent""#),
    ] {
        let (got, answer) = server.post(path, body).await;
        assert_eq!(got, code, "{path}: {answer}");
        assert!(error(&answer).contains(reason), "{path}: {answer}");
    }
    for (path, code, reason) in [
        ("/orders/absent", StatusCode::NOT_FOUND, "no run of workflow id"),
        ("/orders/absent/history", StatusCode::NOT_FOUND, "no run of workflow id"),
        ("/orders?status=lost", StatusCode::BAD_REQUEST, "say one of open, completed, failed, cancelled"),
        ("/orders?limit=0", StatusCode::BAD_REQUEST, "ask for 1 or more"),
        ("/orders?limit=many", StatusCode::BAD_REQUEST, "invalid digit"),
        ("/nowhere", StatusCode::NOT_FOUND, ""),
    ] {
        let (got, answer) = server.get(path).await;
        assert_eq!(got, code, "{path}: {answer}");
        assert!(answer.contains(reason), "{path}: {answer}");
    }
    let garbage = Request::post("/orders").header("content-type", "application/json").body(Body::from("{")).unwrap();
    assert_eq!(server.ask(garbage).await.0, StatusCode::BAD_REQUEST);
    let text = Request::post("/orders").body(Body::from("hello")).unwrap();
    assert_eq!(server.ask(text).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);

    server.post("/orders", order("o-1", "visa")).await;
    server.until_stage("o-1", "confirming").await;
    let (code, answer) = server.post("/orders/o-1/confirm", json!({ "by": " " })).await;
    assert_eq!((code, error(&answer)), (StatusCode::CONFLICT, "the update was rejected: say who confirms the payment"));
}

#[tokio::test]
async fn stuck_order_says_why_on_every_route() {
    let site = Site::new();
    let server = site.open(Version::V2).await;
    server.post("/orders", order("o-1", "visa")).await;
    server.until_stage("o-1", "confirming").await;
    assert_eq!(server.get("/stuck").await, (StatusCode::OK, "0 stuck\n".to_owned()));
    server.app.shutdown().await;

    let server = site.open(Version::V3).await;
    let (code, answer) = server.post("/orders/o-1/confirm", json!({ "by": "ada" })).await;
    assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE);
    assert!(error(&answer).contains("is kept") && error(&answer).contains("nondeterminism"), "{answer}");
    assert!(server.order("o-1").await["stuck"].as_str().is_some_and(|stuck| stuck.contains("help:")));
    let (_, stuck) = server.get("/stuck").await;
    assert!(stuck.starts_with("order o-1 is stuck") && stuck.ends_with("1 stuck\n"), "{stuck}");
    server.app.shutdown().await;

    // What was noted while it was stuck is taken by the code that can.
    let server = site.open(Version::V4).await;
    let closed = server.until("o-1", |order| order["status"] == "completed").await;
    assert_eq!(closed["outcome"]["outcome"], "shipped");
    assert_eq!(server.get("/stuck").await.1, "0 stuck\n");
}

/// The program itself: a free port, printed; an end on Ctrl-C that leaves the file to the next.
#[test]
fn the_program_serves_until_it_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db");
    for (order, expected) in [("o-1", "201 Created"), ("o-2", "201 Created")] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_dacapo-shop"))
            .args(["serve", file.to_str().unwrap(), "--port", "0", "--version", "v4"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(program.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let address = line.trim_end().rsplit_once("http://").expect(&line).1.to_owned();
        let body = json!({ "id": order, "sku": "violin", "quantity": 1, "cents": 1, "card": "visa" }).to_string();
        let answer = ask(&address, "POST /orders", &body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{answer}");
        assert!(ask(&address, "GET /orders/o-1", "").contains(r#""id":"o-1""#), "the first order is still there");

        Command::new("kill").args(["-INT", &program.id().to_string()]).status().unwrap();
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "ended; every open order goes on with the next start\n");
        assert!(program.wait().unwrap().success());
    }
}

fn ask(address: &str, what: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{what} HTTP/1.1\r\nhost: shop\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn invalid_command_line_arguments_print_the_usage() {
    for arguments in [&[][..], &["serve"], &["serve", "x", "--speed", "9"], &["serve", "x", "--version", "v9"]] {
        let said = Command::new(env!("CARGO_BIN_EXE_dacapo-shop")).args(arguments).output().unwrap();
        let text = String::from_utf8(said.stderr).unwrap();
        assert!(!said.status.success() && (text.contains("usage") || text.contains("say v1")), "{text}");
    }
}
