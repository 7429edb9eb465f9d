//! The Unix socket beside a store's file, for programs of the same user.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Error, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use axum::Router;
use axum::serve::Listener;
use rustix::process::geteuid;
use tokio::net::unix::SocketAddr;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// The most bytes of a socket's path: the kernel's limit.
const LONGEST: usize = 107;
/// The bytes that the folder in which the socket is bound adds to the path.
const FOLDER: usize = "/.dacapo-0123456789/s".len();

/// A control API on a Unix socket. It ends, and the socket is removed, with this value.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
    inode: (u64, u64),
    task: JoinHandle<()>,
}

/// Returns the path of the socket for a store's file: beside it, or in the runtime folder of the user if that path is too long.
///
/// # Errors
/// The file is not there, or there is no folder for a path that is too long.
pub fn socket_of(file: &Path) -> io::Result<PathBuf> {
    let file = fs::canonicalize(file)?;
    let mut name = file.clone().into_os_string();
    name.push("-control");
    if name.len() <= LONGEST && folder_of(Path::new(&name)).as_os_str().len() + FOLDER <= LONGEST {
        return Ok(name.into());
    }
    let data = fs::metadata(&file)?;
    Ok(runtime_folder()?.join(format!("{}-{}.control", data.dev(), data.ino())))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// The folder for sockets of this user, which no other user can enter.
fn runtime_folder() -> io::Result<PathBuf> {
    let user = geteuid().as_raw();
    let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("dacapo"),
        None => std::env::temp_dir().join(format!("dacapo-{user}")),
    };
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let data = fs::symlink_metadata(&folder)?;
    if !data.is_dir() || data.uid() != user || data.mode() & 0o077 != 0 {
        return Err(Error::new(
            ErrorKind::PermissionDenied,
            format!("{} is not a folder of this user alone: remove it, or set XDG_RUNTIME_DIR", folder.display()),
        ));
    }
    Ok(folder)
}

impl ControlSocket {
    /// Serves a router at this path, for processes of the same user and of root. The caller has the lease of the store, so a socket that
    /// is there was left by a process that is gone, and is replaced.
    ///
    /// # Errors
    /// The socket cannot be bound there.
    pub fn serve(path: &Path, router: Router) -> io::Result<Self> {
        let listener = bound(path)?;
        let data = fs::symlink_metadata(path)?;
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(SameUser(listener), router).await {
                tracing::warn!(%error, "the control socket does not answer any more");
            }
        });
        Ok(Self { path: path.to_owned(), inode: (data.dev(), data.ino()), task })
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl ControlSocket {
    /// Accepts nothing more, and removes the socket, unless another process has put its own in its place.
    pub fn close(&self) {
        self.task.abort();
        if fs::symlink_metadata(&self.path).is_ok_and(|data| (data.dev(), data.ino()) == self.inode) {
            fs::remove_file(&self.path).ok();
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.close();
    }
}

/// Binds the socket in a folder of its own, which no other user can enter, and moves it into its place when only its user can connect.
fn bound(path: &Path) -> io::Result<UnixListener> {
    let folder = tempfile::Builder::new()
        .prefix(".dacapo-")
        .rand_bytes(10)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(folder_of(path))?;
    let inside = folder.path().join("s");
    let listener = UnixListener::bind(&inside)?;
    fs::set_permissions(&inside, Permissions::from_mode(0o600))?;
    if fs::symlink_metadata(path).is_ok_and(|data| !std::os::unix::fs::FileTypeExt::is_socket(&data.file_type())) {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            format!("{} is there and is no socket: move it away", path.display()),
        ));
    }
    fs::rename(&inside, path)?;
    Ok(listener)
}

/// Accepts connections of the same user and of root.
struct SameUser(UnixListener);

impl Listener for SameUser {
    type Io = UnixStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (UnixStream, SocketAddr) {
        loop {
            match self.0.accept().await {
                Ok((stream, address)) => match stream.peer_cred() {
                    Ok(peer) if peer.uid() == geteuid().as_raw() || peer.uid() == 0 => return (stream, address),
                    Ok(peer) => tracing::warn!(uid = peer.uid(), "another user may not use the control socket"),
                    Err(error) => tracing::warn!(%error, "a connection to the control socket says not who it is"),
                },
                // Too many open files, most likely: others close some.
                Err(error) => {
                    tracing::warn!(%error, "the control socket accepts no connection now");
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}
