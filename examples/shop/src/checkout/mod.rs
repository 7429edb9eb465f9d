//! The checkout, in the four versions of a deploy story. All of them are the workflow `checkout`; a program serves one.
//!
//! | version | what it changes | what open runs make of it |
//! |---|---|---|
//! | v1 | | |
//! | v2 | other retries and timeouts; an order can be a gift; a screening before the charge, behind a patch | they go on with what they recorded, and are not screened |
//! | v3 | **a bad deploy**: two steps change places, and a recorded result changes its type | they get stuck, say why, and wait for better code |
//! | v4 | v2, and bonus points behind a patch of their own | they go on |

mod steps;
pub mod v1;
pub mod v2;
pub mod v3;
pub mod v4;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use dacapo::prelude::*;
use dacapo::{Handle, StartCall};

use crate::order::Outcome;
use crate::shop::Shop;

/// The name that all versions are recorded under.
pub const CHECKOUT: &str = "checkout";

/// Which checkout a program serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The first.
    V1,
    /// The second.
    V2,
    /// The bad one.
    V3,
    /// The one after.
    V4,
}

impl Version {
    /// Serves the checkout of this version, under a build of its name.
    pub async fn serve(self, store: Dacapo, shop: Arc<Shop>) -> dacapo::Result<App> {
        let store = store.build(format!("shop-{self}"));
        match self {
            Self::V1 => store.serve((v1::checkout, shop)).await,
            Self::V2 => store.serve((v2::checkout, shop)).await,
            Self::V3 => store.serve((v3::checkout, shop)).await,
            Self::V4 => store.serve((v4::checkout, shop)).await,
        }
    }

    /// Starts the checkout of an order. The order's id is the workflow id, and is used once; the same request again is the
    /// same start.
    pub async fn start(self, app: &App, order: v2::Order, request: &str) -> dacapo::Result<Handle<Outcome>> {
        let id = order.id.clone();
        let start: StartCall<Outcome> = match self {
            Self::V1 => app.start(v1::checkout, order.into()),
            Self::V2 => app.start(v2::checkout, order),
            Self::V3 => app.start(v3::checkout, order),
            Self::V4 => app.start(v4::checkout, order),
        };
        start.id(id).id_reuse(IdReuse::RejectDuplicate).request_id(request.to_owned()).await
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::V3 => "v3",
            Self::V4 => "v4",
        })
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::V1, Self::V2, Self::V3, Self::V4];
        let found = all.into_iter().find(|version| version.to_string() == text);
        found.ok_or_else(|| format!("there is no version {text:?}: say v1, v2, v3 or v4"))
    }
}
