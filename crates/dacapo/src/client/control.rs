//! The socket beside a file that is served.

use std::path::Path;
use std::sync::Arc;

use dacapo_control::{Access, Control, ControlSocket, socket_of};
use dacapo_engine::Engine;

/// Offers the calls of an engine at the socket of its file. The engine has the lease of the file by now.
pub(crate) fn offer(file: &Path, engine: &Engine) -> Option<ControlSocket> {
    let router = Control::new(Arc::new(engine.clone()), Access::Connected).router();
    let offered = socket_of(file).and_then(|path| ControlSocket::serve(&path, router));
    let failed = |error: &std::io::Error| {
        tracing::warn!(
            file = %file.display(), %error,
            "other programs cannot call this one, because the control socket cannot be made; `control_socket(false)` leaves it out"
        );
    };
    offered.inspect_err(failed).ok()
}
