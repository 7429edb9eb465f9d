//! Turns: what causes one, what it holds, what it leaves in the store.

use dacapo_core::{Ctx, Failure, Payload};
use dacapo_engine::Options;

use crate::kit::{Serve, completed, options, over_every_cache, text};

async fn two_steps(ctx: Ctx, input: Payload) -> Result<Payload, Failure> {
    let first = ctx.activity("double", input).await?;
    ctx.activity("double", first).await
}

fn doubling() -> Options {
    options().workflow("two steps", two_steps).activity("double", |_, input| {
        let number: u64 = text(&input).parse().unwrap();
        Ok((number * 2).to_string().into())
    })
}

/// S2-6
#[test]
fn two_activities_in_sequence_make_exactly_three_turns() {
    over_every_cache(doubling, |stage| {
        stage.start("two steps", "a", "3").unwrap();
        assert_eq!(stage.result("a"), completed("12"));
        let described = stage.engine().describe(&dacapo_engine::RunId::of("a")).unwrap();
        assert_eq!(described.turns, 3);
        vec!["a"]
    });
}
