use dacapo::prelude::*;

#[derive(Default)]
struct NoRun;

#[workflow]
impl NoRun {
    #[signal]
    fn go(&mut self) {}
}

#[derive(Default)]
struct Query;

#[workflow]
impl Query {
    #[run]
    async fn run(ctx: Ctx<Self>) -> Result<(), Failure> {
        let _ = ctx;
        Ok(())
    }

    #[query]
    fn changes(&mut self) -> u8 {
        1
    }
}

#[derive(Default)]
struct Async;

#[workflow]
impl Async {
    #[run]
    async fn run(ctx: Ctx<Self>) -> Result<(), Failure> {
        let _ = ctx;
        Ok(())
    }

    #[signal]
    async fn go(&mut self) {}
}

#[derive(Default)]
struct Validated;

#[workflow]
impl Validated {
    #[run]
    async fn run(ctx: Ctx<Self>) -> Result<(), Failure> {
        let _ = ctx;
        Ok(())
    }

    #[validate(withdraw)]
    fn check(&self) -> Result<(), Failure> {
        Ok(())
    }
}

struct NoState;

#[workflow]
impl NoState {
    #[run]
    async fn run(ctx: Ctx<Self>) -> Result<(), Failure> {
        let _ = ctx;
        Ok(())
    }
}

fn main() {}
