//! What every request passes before anything is done: the name of the server that it is for, the page that it comes from, and who sends it.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Control;
use super::problem::Problem;
use crate::Role;

/// Who sends a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) role: Role,
}

pub(crate) async fn check(State(control): State<Arc<Control>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let refused = is_for_this_server(&control, &parts).and_then(|()| is_of_this_site(&parts)).err();
    if let Some(problem) = refused {
        return closed(problem.into_response());
    }
    if !is_open(parts.uri.path()) {
        let Some((name, role)) = control.access.caller(&parts) else {
            let detail = control.access.refusal(&parts);
            return closed(Problem::new(StatusCode::UNAUTHORIZED, detail).into_response());
        };
        parts.extensions.insert(Caller { name, role });
    }
    closed(next.run(Request::from_parts(parts, body)).await)
}

/// Returns whether a path says nothing about runs, so that those who watch the process need no token.
fn is_open(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/openapi.json")
}

fn host(parts: &Parts) -> Option<&str> {
    let sent = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    sent.or_else(|| parts.uri.authority().map(|authority| authority.as_str()))
}

/// Returns the name of a host without its port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_for_this_server(control: &Control, parts: &Parts) -> Result<(), Problem> {
    let Some(host) = host(parts) else {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "the request has no `Host`"));
    };
    let name = without_port(host).to_lowercase();
    match control.hosts.contains(&name) {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            format!(
                "this server is not {name:?}: call it by a name that it knows, or add this one with `Control::host`"
            ),
        )),
    }
}

/// A browser says which page a request comes from. Programs say nothing.
fn is_of_this_site(parts: &Parts) -> Result<(), Problem> {
    let foreign = |what: String| {
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            format!("{what} may not call this server: open it in a page of its own"),
        ))
    };
    if let Some(origin) = parts.headers.get(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or("?");
        let of = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if of.is_none() || of != host(parts) {
            return foreign(format!("a page of {origin:?}"));
        }
    }
    match parts.headers.get("sec-fetch-site").and_then(|site| site.to_str().ok()) {
        Some("cross-site" | "same-site") => foreign("a page of another site".to_owned()),
        _ => Ok(()),
    }
}

/// No other page may read an answer or show it in a frame, and nothing keeps it.
fn closed(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
