//! One request on a connection of its own: calls may wait for days, and none holds up another.

use bytes::Bytes;
use dacapo_client::{Error, Result};
use http_body_util::{BodyExt as _, Full};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::Target;

/// The members of a problem that a client reads.
#[derive(Deserialize)]
struct Problem {
    detail: String,
    error: Option<Error>,
}

pub(super) async fn get(target: &Target, path: &str) -> Result<Bytes> {
    send(target, Method::GET, path, Vec::new()).await
}

pub(super) async fn send_json(target: &Target, path: &str, body: Vec<u8>) -> Result<Bytes> {
    send(target, Method::POST, path, body).await
}

async fn send(target: &Target, method: Method, path: &str, body: Vec<u8>) -> Result<Bytes> {
    match target {
        Target::Unix(socket) => {
            let stream = UnixStream::connect(socket).await.map_err(|error| unreachable(target, &error))?;
            exchange(target, stream, request(method, path, "localhost", None, body)?).await
        }
        Target::Http { authority, token } => {
            let stream = TcpStream::connect(authority).await.map_err(|error| unreachable(target, &error))?;
            exchange(target, stream, request(method, path, authority, token.as_deref(), body)?).await
        }
    }
}

fn unreachable(target: &Target, error: &std::io::Error) -> Error {
    let advice = match socket_beside(target) {
        Some(socket) => format!("This is no socket, but there is one beside it: connect to `unix:{socket}`"),
        None => "Check that the program that serves the runs is running".to_owned(),
    };
    Error::Unavailable(format!("{target} cannot be reached: {error}. {advice}"))
}

/// Returns the socket of the program that serves a file, where the address names the file itself.
fn socket_beside(target: &Target) -> Option<String> {
    let Target::Unix(path) = target else { return None };
    let socket = format!("{}-control", path.display());
    (path.is_file() && std::path::Path::new(&socket).exists()).then_some(socket)
}

fn request(method: Method, path: &str, host: &str, token: Option<&str>, body: Vec<u8>) -> Result<Request<Full<Bytes>>> {
    let mut request =
        Request::builder().method(method).uri(path).header(HOST, host).header(CONTENT_TYPE, "application/json");
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    request
        .body(Full::new(body.into()))
        .map_err(|error| Error::InvalidArgument(format!("the host or the token cannot stand in a request: {error}")))
}

async fn exchange<S>(target: &Target, stream: S, request: Request<Full<Bytes>>) -> Result<Bytes>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let broken = |error: hyper::Error| {
        Error::Unavailable(format!("the connection to {target} broke: {error}. Whether a change was made is not known"))
    };
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let connection = Connection(tokio::spawn(async move {
        // What breaks it breaks the request as well.
        let _ = connection.await;
    }));
    let response = sender.send_request(request).await.map_err(broken)?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(broken)?.to_bytes();
    drop(connection);
    if status.is_success() { Ok(body) } else { Err(failure(target, status, &body)) }
}

/// The task that moves the bytes of a connection. It ends with the request, so that the server learns when a caller waits no more.
struct Connection(tokio::task::JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns the server's own error, or says what it answered.
fn failure(target: &Target, status: StatusCode, body: &[u8]) -> Error {
    match serde_json::from_slice(body) {
        Ok(Problem { error: Some(error), .. }) => error,
        Ok(Problem { detail, .. }) if status == StatusCode::UNAUTHORIZED => {
            Error::Refused(format!("{target} refuses the call: {detail}. Connect to `http://TOKEN@HOST:PORT`"))
        }
        Ok(Problem { detail, .. }) => Error::Refused(format!("{target} refuses the call: {detail}")),
        Err(_) => Error::Unavailable(format!("{target} answers with {status}, which is no answer of a control API")),
    }
}
