//! The deploy gate: unsafe changes of a workflow are found at their lines, and safe ones pass.
#![cfg(feature = "sqlite")]

use std::time::Duration;

use dacapo::prelude::*;
use dacapo::{DeployReport, Query as QueryName, StuckCause};

const GO: Signal<u32> = Signal::new("go");
const SHORT: Duration = Duration::from_millis(1);

#[activity]
async fn charge(item: String) -> Result<String, Failure> {
    Ok(format!("receipt for {item}"))
}

#[activity]
async fn pack(receipt: String) -> Result<String, Failure> {
    Ok(receipt)
}

#[activity]
async fn ship(item: String) -> Result<String, Failure> {
    Ok(item)
}

#[workflow]
async fn parcel(_ctx: Ctx, item: String) -> Result<String, Failure> {
    Ok(item)
}

/// As it was when the runs were recorded.
#[workflow(name = "order")]
async fn recorded(ctx: Ctx, item: String) -> Result<String, Failure> {
    let receipt = ctx.call(charge, item.clone()).await?;
    ctx.sleep(SHORT).await?;
    ctx.call(pack, receipt).await?;
    ctx.next_signal(GO).await?;
    ctx.call(ship, item).await
}

/// Defines a version of the workflow.
macro_rules! version {
    ($name:ident, |$ctx:ident, $item:ident| $body:block) => {
        #[workflow(name = "order")]
        async fn $name($ctx: Ctx, $item: String) -> Result<String, Failure> $body
    };
}

version!(reordered, |ctx, item| {
    ctx.call(pack, item.clone()).await?;
    ctx.sleep(SHORT).await?;
    ctx.call(charge, item).await
});
version!(other_input, |ctx, item| {
    ctx.call(charge, format!("{item}!")).await?;
    ctx.sleep(SHORT).await?;
    ctx.call(ship, item).await
});
version!(new_branch, |ctx, item| {
    if !item.is_empty() {
        ctx.call(pack, item.clone()).await?;
    }
    ctx.call(charge, item).await
});
version!(no_timer, |ctx, item| {
    let receipt = ctx.call(charge, item.clone()).await?;
    ctx.call(pack, receipt).await?;
    ctx.next_signal(GO).await?;
    ctx.call(ship, item).await
});
version!(renamed_activity, |ctx, item| {
    let receipt = ctx.call(ship, item.clone()).await?;
    ctx.sleep(SHORT).await?;
    ctx.call(pack, receipt).await
});
version!(other_default, |ctx, item| {
    let item = if item == "lamp" { "rug".to_owned() } else { item };
    ctx.call(charge, item).await
});
version!(longer_timer, |ctx, item| {
    let receipt = ctx.call(charge, item).await?;
    ctx.sleep(SHORT * 2).await?;
    ctx.call(pack, receipt).await
});
version!(activity_for_timer, |ctx, item| {
    let receipt = ctx.call(charge, item).await?;
    ctx.call(pack, receipt).await
});
version!(no_pack, |ctx, item| {
    ctx.call(charge, item.clone()).await?;
    ctx.sleep(SHORT).await?;
    ctx.next_signal(GO).await?;
    ctx.call(ship, item).await
});
version!(second_timer, |ctx, item| {
    let receipt = ctx.call(charge, item).await?;
    ctx.sleep(SHORT).await?;
    ctx.sleep(SHORT).await?;
    ctx.call(pack, receipt).await
});
version!(activity_between, |ctx, item| {
    let receipt = ctx.call(charge, item.clone()).await?;
    ctx.call(ship, item).await?;
    ctx.sleep(SHORT).await?;
    ctx.call(pack, receipt).await
});
version!(at_once, |ctx, item| {
    let both = ctx.join([ctx.call(charge, item.clone()), ctx.call(pack, item)]).await;
    both.into_iter().next_back().unwrap()
});
version!(local, |ctx, item| {
    let receipt = ctx.call_local(charge, item).await?;
    ctx.call(pack, receipt).await
});
version!(child, |ctx, item| {
    let receipt = ctx.child(parcel, item).await?;
    ctx.call(pack, receipt).await
});
version!(signal_first, |ctx, item| {
    ctx.next_signal(GO).await?;
    ctx.call(charge, item).await
});
version!(side_effect, |ctx, item| {
    let mark: u32 = ctx.side_effect("mark", || async { Ok(7) }).await?;
    ctx.call(charge, format!("{item}{mark}")).await
});
version!(ends_early, |ctx, item| { ctx.call(charge, item).await });
version!(fails_early, |ctx, item| {
    ctx.call(charge, item).await?;
    Err("no".into())
});
version!(twice, |ctx, item| {
    for _ in 0..2 {
        ctx.call(charge, item.clone()).await?;
    }
    ctx.call(pack, item).await
});
version!(flipped, |ctx, item| {
    let receipt = ctx.call(charge, item.clone()).await?;
    if receipt.is_empty() {
        ctx.sleep(SHORT).await?;
    }
    ctx.call(pack, receipt).await
});

version!(cloned, |ctx, item| {
    let what = item;
    let receipt = ctx.call(charge, what.clone()).await?;
    ctx.sleep(SHORT).await?;
    let _ = ctx.call(pack, receipt).await?;
    let _ = ctx.next_signal(GO).await?;
    ctx.call(ship, what).await
});
async fn begin(ctx: &Ctx, item: &str) -> Result<String, Failure> {
    let receipt = ctx.call(charge, item.to_owned()).await?;
    ctx.sleep(SHORT).await?;
    ctx.call(pack, receipt).await
}
version!(in_a_function, |ctx, item| {
    begin(&ctx, &item).await?;
    ctx.next_signal(GO).await?;
    ctx.call(ship, item).await
});
version!(new_end, |ctx, item| {
    begin(&ctx, &item).await?;
    ctx.next_signal(GO).await?;
    ctx.call(ship, item.clone()).await?;
    ctx.call(charge, item).await
});
version!(other_signal_order, |ctx, item| {
    begin(&ctx, &item).await?;
    for _ in 0..3 {
        ctx.next_signal(GO).await?;
    }
    Ok(item)
});
version!(patched, |ctx, item| {
    if ctx.patched("check-first") {
        ctx.call(ship, item.clone()).await?;
    }
    begin(&ctx, &item).await?;
    ctx.next_signal(GO).await?;
    ctx.call(ship, item).await
});
version!(patched_input, |ctx, item| {
    let what = if ctx.patched("loud") { format!("{item}!") } else { item.clone() };
    begin(&ctx, &what).await?;
    ctx.next_signal(GO).await?;
    ctx.call(ship, item).await
});
version!(with_a_query, |ctx, item| {
    ctx.on_query(QueryName::<(), u32>::new("state"), |()| Ok(1));
    begin(&ctx, &item).await?;
    ctx.next_signal(GO).await?;
    ctx.call(ship, item).await
});
version!(other_failure, |ctx, item| {
    begin(&ctx, &item).await.map_err(|failure| Failure::from(format!("it did not begin: {failure}")))?;
    ctx.next_signal(GO).await?;
    ctx.call(ship, item).await
});
version!(timer_after_the_signal, |ctx, item| {
    begin(&ctx, &item).await?;
    ctx.next_signal(GO).await?;
    ctx.sleep(SHORT * 9).await?;
    ctx.call(ship, item).await
});
version!(with_a_cell, |ctx, item| {
    let steps = ctx.cell(0);
    begin(&ctx, &item).await?;
    steps.update(|steps| *steps += 1);
    ctx.next_signal(GO).await?;
    Ok(format!("{item} after {}", steps.read(|steps| *steps)))
});

/// Records runs that wait for the signal, and stops.
async fn recorded_runs(url: &str, count: u32) {
    let app = Dacapo::open(url).await.unwrap().serve((recorded, charge, pack, ship)).await.unwrap();
    for number in 0..count {
        app.start(recorded, "lamp".to_owned()).id(format!("order-{number}")).await.unwrap();
    }
    for number in 0..count {
        let client = app.client().clone();
        let is_packed = || async {
            let history = client.history(dacapo::RunRef::latest(format!("order-{number}")), None, 100).await.unwrap();
            history.events.iter().filter(|event| matches!(event.kind, dacapo::EventKind::OperationEnded { .. })).count()
                == 3
        };
        while !is_packed().await {
            // sleep: nothing is told when a run begins to wait.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    app.shutdown().await;
}

async fn report<P>(url: &str, items: impl dacapo::Register<P>) -> DeployReport {
    let dacapo = Dacapo::open(&format!("{url}?mode=ro")).await.unwrap();
    DeployReport::of("orders", dacapo.check_open_runs(items, |_| {}).await.unwrap())
}

/// The line of this file on which a text stands for the first time after another one.
fn line_of(version: &str, text: &str) -> u32 {
    let source = include_str!("deploy_gate.rs");
    let from = source.find(version).unwrap();
    let at = from + source[from..].find(text).unwrap();
    source[..at].lines().count() as u32
}

#[tokio::test]
async fn unsafe_changes_are_found_at_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("orders.db").display());
    recorded_runs(&url, 2).await;
    macro_rules! found {
        ($($version:ident: $recorded:literal, $new:literal;)*) => {{
            let mut count = 0;
            $({
                let report = report(&url, ($version, parcel, charge, pack, ship)).await;
                assert_eq!(report.problems.len(), 1, "{}: {report}", stringify!($version));
                let problem = &report.problems[0];
                assert_eq!((problem.cause, problem.runs), (StuckCause::Nondeterminism, 2), "{report}");
                // The new code does something where the old one did nothing.
                let recorded = match $recorded {
                    "" => "recorded nothing".to_owned(),
                    text => format!("deploy_gate.rs:{}:", line_of("async fn recorded", text)),
                };
                assert!(problem.subject.contains(&recorded), "{}: {recorded} is not in {}", stringify!($version), problem.subject);
                if !$new.is_empty() {
                    let new = format!("deploy_gate.rs:{}:", line_of(concat!("version!(", stringify!($version)), $new));
                    assert!(problem.subject.contains(&new), "{}: {new} is not in {}", stringify!($version), problem.subject);
                }
                let patch = problem.patch().unwrap();
                assert!(report.to_string().contains(&patch) && patch.contains("ctx.patched("), "{}: {report}", stringify!($version));
                count += 1;
            })*
            count
        }};
    }
    let count = found! {
        reordered: "ctx.call(charge", "ctx.call(pack";
        other_input: "ctx.call(charge", "ctx.call(charge";
        new_branch: "ctx.call(charge", "ctx.call(pack";
        no_timer: "ctx.sleep", "ctx.call(pack";
        renamed_activity: "ctx.call(charge", "ctx.call(ship";
        other_default: "ctx.call(charge", "ctx.call(charge";
        longer_timer: "ctx.sleep", "ctx.sleep";
        activity_for_timer: "ctx.sleep", "ctx.call(pack";
        no_pack: "ctx.call(pack", "";
        second_timer: "ctx.call(pack", "ctx.sleep(SHORT).await?;\n    ctx.call";
        activity_between: "ctx.sleep", "ctx.call(ship";
        at_once: "", "ctx.call(pack";
        local: "ctx.call(charge", "ctx.call_local";
        child: "ctx.call(charge", "ctx.child";
        signal_first: "ctx.call(charge", "";
        side_effect: "ctx.call(charge", "ctx.side_effect";
        ends_early: "ctx.sleep", "";
        fails_early: "ctx.sleep", "";
        twice: "ctx.sleep", "ctx.call(charge";
        flipped: "ctx.sleep", "ctx.call(pack";
    };
    assert_eq!(count, 20);
}

#[tokio::test]
async fn safe_changes_pass() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("orders.db").display());
    recorded_runs(&url, 2).await;
    macro_rules! pass {
        ($($version:ident)*) => {{
            let mut count = 0;
            $({
                let report = report(&url, ($version, parcel, charge, pack, ship)).await;
                assert!(report.is_safe(), "{}: {report}", stringify!($version));
                count += 1;
            })*
            count
        }};
    }
    let count = pass! {
        recorded cloned in_a_function new_end other_signal_order patched patched_input with_a_query other_failure
        timer_after_the_signal with_a_cell
    };
    assert_eq!(count, 11);
}

dacapo::deploy_gate!(good, (recorded, charge, pack, ship));
dacapo::deploy_gate!(bad, (reordered, charge, pack, ship));

/// Runs a gate of this file, as `cargo dacapo check` does.
fn run_gate(name: &str, url: Option<&str>, reports: &std::path::Path) -> (bool, String) {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", &format!("{name}::dacapo_deploy_gate")]);
    command.env_remove("DACAPO_CHECK_URL").env("DACAPO_CHECK_REPORTS", reports).env("RUST_BACKTRACE", "0");
    if let Some(url) = url {
        command.env("DACAPO_CHECK_URL", url);
    }
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn gate_passes_good_code_and_fails_with_the_report_of_bad_code() {
    let folder = tempfile::tempdir().unwrap();
    let (url, reports) =
        (format!("sqlite:{}", folder.path().join("orders.db").display()), folder.path().join("reports"));
    recorded_runs(&url, 3).await;
    let (passed, said) = run_gate("good", Some(&url), &reports);
    assert!(passed && said.contains("good: this code plays every one of 3 open runs"), "{said}");
    let (passed, said) = run_gate("bad", Some(&url), &reports);
    assert!(!passed && said.contains("bad: 3 of 3 open runs could not go on with this code, for 1 problem"), "{said}");
    for (file, text) in
        [("bad.txt", "such as order-"), ("bad.json", "\"cause\": \"nondeterminism\""), ("bad.xml", "failures=\"1\"")]
    {
        let written = std::fs::read_to_string(reports.join(file)).unwrap();
        assert!(written.contains(text), "{file}: {written}");
    }
    let (passed, said) = run_gate("good", None, &reports);
    assert!(!passed && said.contains("cargo dacapo check --url"), "{said}");
    let (passed, said) = run_gate("good", Some("sqlite:/no/such/orders.db"), &reports);
    assert!(!passed && said.contains("/no/such/orders.db"), "{said}");
}
