//! Bugs that generated programs found, each as a story of its own.

use dacapo_core::{Ctx, Failure, Payload};
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
