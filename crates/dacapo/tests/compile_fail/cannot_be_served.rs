use std::sync::Arc;

use dacapo::Catalog;
use dacapo::prelude::*;

async fn charge(cents: u64) -> Result<String, Failure> {
    Ok(cents.to_string())
}

struct Bank;

#[activities]
impl Bank {
    #[activity]
    async fn refund(self: Arc<Self>, cents: u64) -> Result<u64, Failure> {
        Ok(cents)
    }
}

fn main() {
    let _ = Catalog::of((Bank, charge));
    let _ = Catalog::of(Bank::refund);
}
