//! The socket beside a file: who can connect, what is replaced, and where it goes when the path is too long.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use dacapo_client::RunRef;
use dacapo_control::{Access, ControlSocket, RemoteClient, Target, socket_of};

use crate::served::{app, control};

async fn serve(app: &dacapo::App, path: &Path) -> std::io::Result<ControlSocket> {
    ControlSocket::serve(path, control(app, Access::Connected).router())
}

#[tokio::test]
async fn socket_is_for_its_user_alone_and_goes_with_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.db");
    fs::write(&file, "").unwrap();
    let app = app("memory:").await;
    let path = socket_of(&file).unwrap();
    assert_eq!(path.file_name().unwrap(), "orders.db-control");
    let socket = serve(&app, &path).await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    let client = RemoteClient::connect(Target::Unix(path.clone())).await.unwrap();
    assert!(client.describe(RunRef::latest("none")).await.is_err());
    drop(socket);
    assert!(!path.exists());
}

#[tokio::test]
async fn socket_that_a_dead_process_left_is_replaced_and_a_file_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.db-control");
    let app = app("memory:").await;
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let first = serve(&app, &path).await.unwrap();
    // Another process takes over the store; the first one ends later and leaves the socket of the other alone.
    let second = serve(&app, &path).await.unwrap();
    drop(first);
    RemoteClient::connect(Target::Unix(path.clone())).await.unwrap();
    drop(second);
    fs::write(&path, "mine").unwrap();
    let refused = serve(&app, &path).await.unwrap_err().to_string();
    assert!(refused.contains("is no socket"), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn socket_of_a_path_that_is_too_long_is_named_by_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(90));
    fs::create_dir(&deep).unwrap();
    let file = deep.join("orders.db");
    fs::write(&file, "").unwrap();
    let (path, data) = (socket_of(&file).unwrap(), fs::metadata(&file).unwrap());
    assert_eq!(path.file_name().unwrap().to_str().unwrap(), format!("{}-{}.control", data.dev(), data.ino()));
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
}
