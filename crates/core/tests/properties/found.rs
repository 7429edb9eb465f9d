//! Bugs that generated programs found, each as a story of its own.

use dacapo_core::{CancelType, Ctx, Failure, Payload};
use dacapo_testkit::{check, expect};

/// The text form left out everything that was null, and so the removal of a memo entry or of a search attribute: the
/// transcript read back said that nothing was changed, and did not replay.
#[test]
fn the_removal_of_a_memo_entry_survives_the_text_form() {
    async fn forgets(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        ctx.upsert_memo([("note".into(), None)]);
        ctx.upsert_search_attributes([("colour".into(), None), ("size".into(), Some("3".into()))]);
        Ok(Payload::empty())
    }
    check(
        forgets,
        "start",
        expect![[r#"
            turn 0  [] memo note  [] search attributes colour size  [] complete
        "#]],
    );
}

/// A wait that a cancellation does not end (for an activity that is to be waited for until it has stopped, for branches,
/// for a scope) took no result that came after the cancellation either, and so never ended.
#[test]
fn a_cancelled_run_takes_the_results_it_still_waits_for() {
    async fn stops(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let branch = |name: &'static str| {
            let ctx = ctx.clone();
            async move { ctx.activity(name, "").cancel_type(CancelType::WaitCompleted).await }
        };
        let ended = ctx.parallel([branch("a"), branch("b")]).await;
        let words = ended.into_iter().map(|end| end.map_or_else(|failure| failure.message, |end| end.to_string()));
        Ok(words.collect::<Vec<_>>().join(" ").into())
    }
    check(
        stops,
        "start
         cancel = enough
         drop b: stopped
         resolve a = done",
        expect![[r#"
            turn 0  [p0] activity a  [p1] activity b
            turn 1  [p0] cancel #0  [p1] cancel #1
            turn 2
            turn 3  [] complete done stopped
        "#]],
    );
}
