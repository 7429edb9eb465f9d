//! Encrypted connections and API keys, by a proxy in front of the server that ends the encryption and wants a key.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use dacapo::prelude::*;
use dacapo_examples::fan_out::{Work, count_all};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;

use crate::crashes::Process;
use crate::{Namespace, wait, within};

const KEY: &str = "the-key-of-ada";

#[workflow]
async fn greets(_ctx: Ctx, name: String) -> Result<String, Failure> {
    Ok(format!("hello {name}"))
}

/// Certificates of one authority, in a folder, for a server and a client on the loopback.
struct Certificates {
    folder: TempDir,
    server: rcgen::CertifiedKey<rcgen::KeyPair>,
    authority: rcgen::Certificate,
}

impl Certificates {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).unwrap();
        let issuer = rcgen::Issuer::new(params, key);
        let signed = |name: &str| {
            let signing_key = rcgen::KeyPair::generate().unwrap();
            let params = rcgen::CertificateParams::new(vec![name.to_owned(), "127.0.0.1".to_owned()]).unwrap();
            rcgen::CertifiedKey { cert: params.signed_by(&signing_key, &issuer).unwrap(), signing_key }
        };
        let (server, client) = (signed("localhost"), signed("client"));
        let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
        write("authority.pem", authority.pem());
        write("client.pem", client.cert.pem());
        write("client.key", client.signing_key.serialize_pem());
        Self { folder, server, authority }
    }

    /// What a server needs that wants certificates of its clients.
    fn acceptor(&self) -> TlsAcceptor {
        let mut roots = tokio_rustls::rustls::RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        let clients = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.server.signing_key.serialize_der()));
        let certificates = vec![self.server.cert.der().clone()];
        let mut config =
            ServerConfig::builder().with_client_cert_verifier(clients).with_single_cert(certificates, key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    /// Writes a profile for Temporal's tools, and returns the address by it.
    fn url(&self, proxy: SocketAddr, namespace: &str, key: &str, with_client: bool) -> String {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let client = match with_client {
            true => {
                format!("client_cert_path = \"{}\"\nclient_key_path = \"{}\"\n", path("client.pem"), path("client.key"))
            }
            false => String::new(),
        };
        let profile = format!(
            "[profile.default]\naddress = \"{proxy}\"\nnamespace = \"{namespace}\"\napi_key = \"{key}\"\n[profile.default.tls]\n\
             server_ca_cert_path = \"{}\"\n{client}",
            path("authority.pem")
        );
        std::fs::write(self.folder.path().join("temporal.toml"), profile).unwrap();
        format!("temporal:?config={}", path("temporal.toml"))
    }
}

/// A proxy that hands on requests with the key, and refuses others.
async fn proxy(acceptor: TlsAcceptor, server: u16) -> SocketAddr {
    proxy_until(acceptor, server, watch::Sender::new(false).subscribe()).await
}

/// The same, until the key is revoked: then it closes its connections, and refuses all requests on new ones.
async fn proxy_until(acceptor: TlsAcceptor, server: u16, revoked: watch::Receiver<bool>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((accepted, _)) = listener.accept().await {
            let (acceptor, mut revoked) = (acceptor.clone(), revoked.clone());
            tokio::spawn(async move {
                // A client without a certificate ends here.
                let Ok(decrypted) = acceptor.accept(accepted).await else { return };
                let to_server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await.unwrap();
                let http = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
                let (sender, connection) = http.handshake(TokioIo::new(to_server)).await.unwrap();
                tokio::spawn(connection);
                let key = if *revoked.borrow() { None } else { Some(KEY) };
                let service = service_fn(move |request| hand_on(sender.clone(), request, key));
                let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let served = http.serve_connection(TokioIo::new(decrypted), service);
                let is_revoked = async move {
                    match key {
                        Some(_) if revoked.wait_for(|revoked| *revoked).await.is_ok() => {}
                        _ => std::future::pending().await,
                    }
                };
                tokio::select! {
                    _ = served => {}
                    () = is_revoked => {}
                }
            });
        }
    });
    address
}

type Sender = hyper::client::conn::http2::SendRequest<Incoming>;

async fn hand_on(
    mut sender: Sender,
    request: Request<Incoming>,
    key: Option<&str>,
) -> hyper::Result<Response<BoxBody<Bytes, hyper::Error>>> {
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if key.is_none_or(|key| given != Some(&format!("Bearer {key}"))) {
        let body = Empty::new().map_err(|never| match never {}).boxed();
        let mut refused = Response::new(body);
        *refused.status_mut() = StatusCode::OK;
        // Refusals of this protocol are trailers, or headers where there is no body.
        refused.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/grpc"));
        refused.headers_mut().insert("grpc-status", header::HeaderValue::from_static("16"));
        refused.headers_mut().insert("grpc-message", header::HeaderValue::from_static("this key is not known"));
        return Ok(refused);
    }
    Ok(sender.send_request(request).await?.map(BodyExt::boxed))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn program_is_served_by_an_encrypted_connection_with_a_certificate_and_a_key() {
    let (namespace, certificates) = (Namespace::new(), Certificates::new());
    let proxy = proxy(certificates.acceptor(), namespace.server.port()).await;
    let url = certificates.url(proxy, &namespace.name, KEY, true);
    let app = Dacapo::open(&url).await.unwrap().serve(greets).await.unwrap();
    let run = app.start(greets, "ada".to_owned()).id("run").await.unwrap();
    assert_eq!(within("it ends", run.result()).await.as_deref(), Ok("hello ada"));
    app.shutdown().await;
    assert!(namespace.event_types("run").iter().any(|event| event == "WORKFLOW_EXECUTION_COMPLETED"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_key_and_missing_certificate_are_refused_with_what_to_do() {
    let (namespace, certificates) = (Namespace::new(), Certificates::new());
    let proxy = proxy(certificates.acceptor(), namespace.server.port()).await;
    let refused = Dacapo::open(&certificates.url(proxy, &namespace.name, "another-key", true)).await;
    let refused = refused.map(drop).unwrap_err().to_string();
    assert!(refused.contains("this key is not known") && refused.contains("TEMPORAL_API_KEY"), "{refused}");
    let refused = Dacapo::open(&certificates.url(proxy, &namespace.name, KEY, false)).await;
    let refused = refused.map(drop).unwrap_err().to_string();
    assert!(refused.contains("cannot be reached") && refused.contains(&proxy.port().to_string()), "{refused}");
}

/// The server's core forgives refusals for a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn program_whose_key_is_revoked_says_so_in_its_health_and_at_its_shutdown() {
    let (namespace, certificates) = (Namespace::new(), Certificates::new());
    let revoked = watch::Sender::new(false);
    let proxy = proxy_until(certificates.acceptor(), namespace.server.port(), revoked.subscribe()).await;
    let app =
        Dacapo::open(&certificates.url(proxy, &namespace.name, KEY, true)).await.unwrap().serve(greets).await.unwrap();
    assert_eq!(app.health()[0].1.ended, None);
    revoked.send_replace(true);
    let why = wait("it is told", async || app.health()[0].1.ended.clone()).await;
    assert!(why.contains("hands out no workflow tasks any more") && why.contains("this key is not known"), "{why}");
    let report = within("it shuts down", app.shutdown()).await;
    assert!(matches!(report.error, Some(dacapo::ClientError::Unavailable(_))), "{:?}", report.error);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn program_finds_its_cluster_key_and_certificates_in_its_environment() {
    let (namespace, certificates) = (Namespace::new(), Certificates::new());
    let proxy = proxy(certificates.acceptor(), namespace.server.port()).await.to_string();
    let path = |name: &str| certificates.folder.path().join(name).display().to_string();
    let (authority, client, key) = (path("authority.pem"), path("client.pem"), path("client.key"));
    let variables = [
        ("TEMPORAL_ADDRESS", proxy.as_str()),
        ("TEMPORAL_NAMESPACE", &namespace.name),
        ("TEMPORAL_API_KEY", KEY),
        ("TEMPORAL_TLS_SERVER_CA_CERT_PATH", &authority),
        ("TEMPORAL_TLS_CLIENT_CERT_PATH", &client),
        ("TEMPORAL_TLS_CLIENT_KEY_PATH", &key),
    ];
    let _worker = Process::start_with("temporal:", &variables);
    let connection = Dacapo::connect(&namespace.url).await.unwrap();
    let run = connection.start(count_all, Work { parts: 3, at_once: 2 }).await.unwrap();
    assert_eq!(within("it ends", run.result()).await, Ok(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn program_finds_its_cluster_in_the_profile_that_its_environment_names() {
    let namespace = Namespace::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("temporal.toml").display().to_string();
    let profile = format!(
        "[profile.shop]\naddress = \"127.0.0.1:{}\"\nnamespace = \"{}\"\n",
        namespace.server.port(),
        namespace.name
    );
    std::fs::write(&file, profile).unwrap();
    let _worker = Process::start_with("temporal:", &[("TEMPORAL_CONFIG_FILE", &file), ("TEMPORAL_PROFILE", "shop")]);
    let connection = Dacapo::connect(&namespace.url).await.unwrap();
    let run = connection.start(count_all, Work { parts: 3, at_once: 2 }).await.unwrap();
    assert_eq!(within("it ends", run.result()).await, Ok(3));
}
