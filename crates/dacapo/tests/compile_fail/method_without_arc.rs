use dacapo::prelude::*;

struct Bank;

#[activities]
impl Bank {
    #[activity]
    async fn charge(&self, cents: u64) -> Result<u64, Failure> {
        Ok(cents)
    }
}

struct Shop;

#[activities]
impl Shop {
    #[activity]
    async fn sell(cents: u64) -> Result<u64, Failure> {
        Ok(cents)
    }
}

struct Post;

impl Post {
    #[activity]
    async fn send(&self) -> Result<(), Failure> {
        Ok(())
    }
}

fn main() {}
