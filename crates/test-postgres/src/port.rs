//! Free ports of the loopback.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context as _, Result};

/// Returns a port that no process listens on.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("the loopback has no free port")?;
    Ok(listener.local_addr()?.port())
}
