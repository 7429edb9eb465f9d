//! A program that serves runs and a control API.

use std::time::Duration;

use dacapo::Query as QueryName;
use dacapo::prelude::*;
use dacapo_control::{Access, Control, Role, Token};
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

pub(crate) const READ: &str = "read-0123456789abcdef";
pub(crate) const OPERATE: &str = "operate-0123456789abcdef";

const PAID: Signal<i64> = Signal::new("paid");
const OWED: QueryName<(), i64> = QueryName::new("owed");

/// Waits until its total is paid.
#[workflow]
async fn order(ctx: Ctx, total: i64) -> Result<i64, Failure> {
    let owed = ctx.cell(total);
    let seen = owed.clone();
    ctx.on_query(OWED, move |()| Ok(seen.read(|owed| *owed)));
    while owed.read(|owed| *owed) > 0 {
        let paid = ctx.next_signal(PAID).await?;
        owed.update(|owed| *owed -= paid);
    }
    Ok(total)
}

pub(crate) struct Served {
    pub(crate) app: App,
    pub(crate) address: String,
}

pub(crate) fn tokens() -> Access {
    let token = |role, secret: &str| Token::new(role, secret).unwrap();
    Access::Tokens(vec![token(Role::Read, READ), token(Role::Operate, OPERATE)])
}

pub(crate) async fn app(url: &str) -> App {
    Dacapo::open(url).await.unwrap().serve(order).await.unwrap()
}

pub(crate) fn control(app: &App, access: Access) -> Control {
    Control::new(app.client().clone(), access)
}

impl Served {
    pub(crate) async fn new() -> Self {
        let app = app("memory:").await;
        let router = control(&app, tokens()).metrics(|| "runs 1\n".to_owned()).router();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { app, address }
    }

    pub(crate) async fn start(&self, id: &str, total: i64) {
        self.app.start(order, total).id(id.to_owned()).await.unwrap();
    }

    /// Sends a request with these headers, and nothing but them and a host.
    pub(crate) async fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (StatusCode, String) {
        let response = self.response(method, path, headers, body).await;
        let status = response.status();
        let body = tokio::time::timeout(Duration::from_secs(30), response.into_body().collect()).await;
        (status, String::from_utf8(body.expect("the answer ends").unwrap().to_bytes().to_vec()).unwrap())
    }

    pub(crate) async fn response(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<hyper::body::Incoming> {
        let stream = TcpStream::connect(&self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", &self.address);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        sender.send_request(request.body(Full::new(bytes::Bytes::from(body.to_owned()))).unwrap()).await.unwrap()
    }

    /// Calls a path as an operator.
    pub(crate) async fn call(&self, method: &str, path: &str, body: &str) -> (StatusCode, Value) {
        let authorization = format!("Bearer {OPERATE}");
        let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
        let (status, text) = self.raw(method, path, &headers, body).await;
        (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }
}
