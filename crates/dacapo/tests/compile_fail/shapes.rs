use dacapo::prelude::*;

#[activity]
async fn generic<T>(value: T) -> Result<(), Failure> {
    drop(value);
    Ok(())
}

#[activity]
async fn borrows(name: &str) -> Result<(), Failure> {
    let _ = name;
    Ok(())
}

#[activity]
async fn five(a: u8, b: u8, c: u8, d: u8, e: u8) -> Result<u8, Failure> {
    Ok(a + b + c + d + e)
}

#[activity]
async fn silent(a: u8) {
    let _ = a;
}

#[activity]
async fn plain(a: u8) -> u8 {
    a
}

#[activity(nom = "x")]
async fn options() -> Result<(), Failure> {
    Ok(())
}

#[workflow(order = "random")]
async fn ordered(ctx: Ctx) -> Result<(), Failure> {
    let _ = ctx;
    Ok(())
}

struct NoError;

#[activity]
async fn odd() -> Result<(), NoError> {
    Err(NoError)
}

fn main() {}
