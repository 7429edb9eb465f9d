//! A search attribute of a type that stores cannot index.

use std::collections::BTreeMap;

use dacapo::prelude::*;

const SIZES: Attr<BTreeMap<String, u64>> = Attr::new("sizes");
const CITY: Attr<String> = Attr::new("city");

#[workflow]
async fn order(ctx: Ctx) -> Result<(), Failure> {
    ctx.set_attr(SIZES, BTreeMap::new());
    ctx.attr(SIZES);
    ctx.set_attr(CITY, 5);
    Ok(())
}

fn main() {}
