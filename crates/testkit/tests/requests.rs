//! Requests of tests while processes die: what is sent again counts once.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dacapo::prelude::*;
use dacapo_testkit::Kit;

const CONSENT: Promise<bool> = Promise::new("consent");
const GO: Signal<u64> = Signal::new("go");

#[activity]
async fn note(text: String) -> Result<u64, Failure> {
    panic!("tests write nothing about {text}")
}

#[workflow]
async fn asks_and_goes_on(ctx: Ctx) -> Result<bool, Failure> {
    let consent = ctx.promise(CONSENT).await?;
    ctx.call(note, "consent".into()).await?;
    ctx.sleep(days(1)).await?;
    Ok(consent)
}

#[workflow]
async fn ends_at_once_when_cancelled(ctx: Ctx) -> Result<String, Failure> {
    let ended = ctx.sleep(days(1)).await;
    assert!(ended.is_err());
    Ok(ctx.cancellation().map(|cancelled| cancelled.reason).unwrap_or_default())
}

#[workflow]
async fn sums(ctx: Ctx) -> Result<u64, Failure> {
    let first = ctx.next_signal(GO).await?;
    let second = ctx.next_signal(GO).await?;
    Ok(first + second)
}

#[test]
fn promise_is_resolved_once_wherever_the_process_dies() {
    let crashes = Kit::sweep(|kit| {
        let notes = kit.fake(note, |_| Ok(1));
        let run = kit.start(asks_and_goes_on, ());
        kit.resolve(&run, CONSENT, true).unwrap();
        assert_eq!(kit.result(&run), Ok(true));
        assert!(notes.count() >= 1);
    });
    assert!(crashes > 0);
}

#[test]
fn run_is_cancelled_wherever_the_process_dies() {
    let crashes = Kit::sweep(|kit| {
        let run = kit.start(ends_at_once_when_cancelled, ());
        kit.cancel(&run, "sold out").unwrap();
        assert_eq!(kit.result(&run), Ok("sold out".into()));
    });
    assert!(crashes > 0);
}

#[test]
fn run_is_reset_once_wherever_the_process_dies() {
    let crashes = Kit::sweep(|kit| {
        let run = kit.start(sums, ());
        kit.signal(&run, GO, 3).unwrap();
        kit.reset(&run, 1, "once more").unwrap();
        kit.signal(&run, GO, 4).unwrap();
        assert_eq!(kit.result(&run), Ok(7));
        assert_eq!(kit.histories().len(), 2, "one run, and the one that the reset made of it");
    });
    assert!(crashes > 0);
}

#[test]
fn start_with_options_is_one_run_wherever_the_process_dies() {
    let crashes = Kit::sweep(|kit| {
        let run = kit.start_with(sums, (), |start| start.id("sum-1").run_timeout(days(1)));
        assert_eq!(run.workflow_id(), "sum-1");
        kit.signal(&run, GO, 3).unwrap();
        kit.advance(days(1));
        let failure = kit.result(&run).unwrap_err();
        assert!(failure.to_string().contains("timeout"), "{failure}");
        assert_eq!(kit.histories().len(), 1);
    });
    assert!(crashes > 0);
}

#[test]
fn converter_that_is_set_after_something_is_served_fails_the_test() {
    let late = catch_unwind(AssertUnwindSafe(|| {
        let mut kit = Kit::new();
        kit.serve(sums);
        drop(kit.converter(dacapo::Converter::json()));
    }));
    let text = late.unwrap_err().downcast_ref::<String>().cloned().unwrap_or_default();
    assert_eq!(text, "set the converter before anything is served or faked");
}

#[test]
fn input_that_a_fake_cannot_read_is_named_with_its_attempt() {
    #[workflow]
    async fn calls_by_name(ctx: Ctx) -> Result<bool, Failure> {
        Ok(ctx.call_raw("note", [dacapo::json::json!(7)]).retry(Retry::none()).await.is_err())
    }
    let mut kit = Kit::new();
    let notes = kit.fake(note, |_| Ok(1));
    assert_eq!(kit.run(calls_by_name, ()), Ok(true));
    assert_eq!(notes.count(), 1);
    let told = catch_unwind(AssertUnwindSafe(|| notes.calls())).unwrap_err();
    let text = told.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(text.starts_with("attempt 1 of activity \"note\": argument `text`"), "{text}");
}
