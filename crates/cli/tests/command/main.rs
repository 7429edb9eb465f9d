//! The command as people call it: on a file that a program serves, on one that none serves, and with what is wrong.

mod demo;
mod gate;
mod shop;

use expect_test::expect;

use crate::shop::{Shop, command, masked};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_are_started_listed_shown_and_changed_through_the_program_that_serves_them() {
    let shop = Shop::new().await;
    let start = ["start", "order", r#"{"item":"lamp","cents":700}"#, "--id", "order-1", "-a", "customer=ada"];
    assert!(shop.ok(&start).contains("order-1"));
    shop.ok(&["start", "order", r#"{"item":"rug","cents":900}"#, "--id", "order-2", "-a", "customer=bob"]);
    shop.until_open("order-1").await;
    let list = masked(&shop.ok(&["list"]));
    expect![[r#"
        WORKFLOW ID  WORKFLOW  STATUS            STARTED              TOOK
        order-2      order     open              MOMENT
        order-1      order     open              MOMENT
    "#]]
    .assert_eq(&list);
    assert!(shop.ok(&["list", "customer = 'ada'"]).lines().count() == 2);
    let page = shop.ok(&["list", "-n", "1"]);
    let cursor = page.lines().last().unwrap().strip_prefix("more: --after ").unwrap();
    assert!(shop.ok(&["list", "--after", cursor]).contains("order-1"));
    assert_eq!(shop.ok(&["query", "order-1", "state"]), "\"waits for the money\"\n");
    let stack = shop.ok(&["stack", "order-1"]);
    assert!(stack.contains("paid") && stack.contains("shop.rs:"), "{stack}");
    assert_eq!(shop.ok(&["signal", "order-1", "paid", "700"]), "signal paid is sent to order-1\n");
    assert_eq!(shop.ok(&["result", "order-1"]), "\"lamp is on its way\"\n");
    assert_eq!(shop.ok(&["count", "--by", "status"]), "open                      1\ncompleted                 1\n");
    let shown = masked(&shop.ok(&["show", "order-1"]));
    expect![[r#"
        order-1
          workflow    order on queue default
          run id      ID
          status      completed
          started     MOMENT
          closed      MOMENT, after TIME
          turns       TURNS
          attribute   customer = ada
          result      "lamp is on its way"

        activity reserve                    ▕BAR▏ TIME
        signal paid                         ▕BAR▏
        timer 10ms                          ▕BAR▏ TIME
    "#]]
    .assert_eq(&shown);
    let story = shop.ok(&["history", "order-1"]);
    assert!(
        story.contains("activity #0 began: reserve(\"lamp\")") && story.contains("signal paid(700) came"),
        "{story}"
    );
    let redacted = shop.ok(&["history", "order-1", "--redact"]);
    assert!(!redacted.contains("lamp"), "{redacted}");
    let difference = shop.ok(&["history", "order-1", "--diff", "order-2"]);
    assert!(difference.contains("- ") && difference.contains("+ "), "{difference}");
    shop.ok(&["terminate", "order-2", "--reason", "enough"]);
    assert_eq!(shop.ok(&["delete", "order-2"]), "order-2 is deleted\n");
    assert!(shop.ok(&["nodes"]).contains("default"));
    assert_eq!(shop.ok(&["stuck"]), "no run is stuck\n");
    assert_eq!(shop.ok(&["verify"]), "everything that is stored is sound\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_can_be_had_as_json() {
    let shop = Shop::new().await;
    let started = shop.json(&["start", "order", r#"{"item":"lamp","cents":700}"#, "--id", "order-1"]);
    assert_eq!((&started["is_new"], &started["run"]["workflow_id"]), (&true.into(), &"order-1".into()));
    assert_eq!(shop.json(&["list"])["runs"][0]["workflow_id"], "order-1");
    assert_eq!(shop.json(&["show", "order-1"])["status"], "open");
    assert_eq!(shop.json(&["count"])[0]["runs"], 1);
    assert_eq!(shop.json(&["history", "order-1"])[0]["event"], "started");
    for verb in ["stuck", "nodes", "verify"] {
        assert!(shop.json(&[verb]).is_array(), "{verb}");
    }
    assert!(shop.json(&["signal", "order-1", "paid", "700"])["done"].is_string());
    assert_eq!(shop.json(&["result", "order-1"])["status"], "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batch_says_what_it_would_do_and_does_it_when_told_to() {
    let shop = Shop::new().await;
    for number in 0..25 {
        shop.start(&format!("order-{number}")).await;
    }
    let would = shop.ok(&["batch", "cancel", "WorkflowId STARTS_WITH 'order-1'"]);
    assert!(
        would.starts_with("would cancel 11 runs: order-19, order-18") && would.ends_with("add --yes to do it\n"),
        "{would}"
    );
    assert_eq!(shop.ok(&["count", "ExecutionStatus = 'Running'"]), "25\n");
    let done = shop.ok(&["batch", "terminate", "WorkflowId STARTS_WITH 'order-1'", "--yes"]);
    assert_eq!(done, "terminate: 11 of 11 runs\n");
    let again = shop.ok(&["batch", "terminate", "WorkflowId STARTS_WITH 'order-1'", "--yes"]);
    assert!(again.starts_with("terminate: 0 of 11 runs\n  skipped order-19: the run of workflow id"), "{again}");
    assert_eq!(shop.ok(&["batch", "delete", "ExecutionStatus = 'Terminated'", "--yes"]), "delete: 11 of 11 runs\n");
    let all = shop.fails(&["batch", "delete", "", "--yes"]);
    assert_eq!(all.0, 2);
    assert!(all.1.contains("say which runs"), "{}", all.1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_that_no_program_serves_is_looked_at_and_not_changed() {
    let mut shop = Shop::new().await;
    shop.start("order-1").await;
    shop.stop().await;
    assert!(shop.ok(&["list"]).contains("order-1"));
    assert!(shop.ok(&["show", "order-1"]).contains("activity reserve"));
    assert_eq!(shop.ok(&["verify"]), "everything that is stored is sound\n");
    for change in [
        &["signal", "order-1", "paid", "1"][..],
        &["start", "order", "1"],
        &["terminate", "order-1"],
        &["delete", "order-1"],
        &["reset", "order-1", "--turn", "0"],
        &["batch", "cancel", "ExecutionStatus = 'Running'", "--yes"],
    ] {
        let (code, text) = shop.fails(change);
        assert_eq!(code, 6, "{change:?}: {text}");
        assert!(text.contains("start the program that serves the runs"), "{change:?}: {text}");
    }
    for look in [&["query", "order-1", "state"][..], &["stack", "order-1"], &["nodes"]] {
        let (code, text) = shop.fails(look);
        assert_eq!(code, 6, "{look:?}: {text}");
        assert!(
            text.contains("start the program that serves the runs") && text.contains("unix:FILE-control"),
            "{text}"
        );
    }
    assert!(shop.ok(&["list"]).contains("open"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_said_with_the_exit_code_of_its_kind() {
    let shop = Shop::new().await;
    shop.start("order-1").await;
    let bad = [
        (&["show", "order-9"][..], 3, "there is no run of workflow id \"order-9\""),
        (&["show", "order-1", "--run-id", "none"], 3, "there is no run"),
        (&["list", "customer = ada"], 2, "at column 12"),
        (&["list", "-n", "0"], 2, "0 is not in 1..=1000"),
        (&["list", "--after", "here"], 2, "invalid cursor"),
        (&["count", "--by", "colour"], 2, "invalid value 'colour'"),
        (&["start", "none"], 2, "no workflow \"none\" is registered"),
        (&["start", "order", "1", "-a", "x"], 2, "write NAME=VALUE"),
        (&["start", "order", r#"{"item":"x","cents":1}"#, "--id", "order-1"], 4, "have the same `--request-id`"),
        (&["query", "order-1", "none"], 1, "none"),
        (&["resolve", "order-1", "none", "1"], 3, "no open promise"),
        (&["reset", "order-1", "--turn", "99"], 2, "99"),
        (&["delete", "order-1"], 4, "the run is open"),
        (&["release", "order-9"], 3, "there is no run"),
        (&["backup", "/no/such/folder/x.db"], 5, "/no/such/folder/x.db"),
        (&["explode"], 2, "unrecognized subcommand 'explode'"),
    ];
    for (words, code, text) in bad {
        let (found, said) = shop.fails(words);
        assert!(said.contains(text), "{words:?}: {said}");
        assert_eq!(found, code, "{words:?}: {said}");
    }
    shop.ok(&["terminate", "order-1"]);
    let (code, said) = shop.fails(&["signal", "order-1", "paid", "1"]);
    assert_eq!(code, 4, "{said}");
    let (code, said) = shop.fails(&["terminate", "order-1"]);
    assert!(code == 4 && said.contains("there is nothing to end or release"), "{said}");
    let (code, said) = shop.fails(&["result", "order-1"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("terminated"), "{said}");
}

#[test]
fn place_that_is_missing_or_wrong_is_named() {
    let fails = |url: Option<&str>| {
        let mut command = command(url);
        let output = command.arg("list").output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = fails(None);
    assert_eq!(code, 2);
    assert!(said.contains("DACAPO_URL"), "{said}");
    assert_eq!(fails(Some("ftp://x")).0, 2);
    let (code, said) = fails(Some("unix:/no/such/socket"));
    assert_eq!((code, said.contains("cannot be reached")), (5, true), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = fails(Some(&format!("sqlite:{}", folder.path().join("none.db").display())));
    assert!(code != 0 && said.contains("none.db"), "{code}: {said}");
    let other = folder.path().join("other.db");
    std::fs::write(&other, "this is a text, and no database of anything that is known").unwrap();
    let (code, said) = fails(Some(&format!("sqlite:{}", other.display())));
    assert_eq!(code, 6, "{said}");
    assert!(said.contains("it is no SQLite database"), "{said}");
}

#[test]
fn manual_and_completions_are_printed_without_a_place() {
    for words in [&["man"][..], &["completions", "bash"], &["completions", "zsh"], &["--help"], &["--version"]] {
        let output = command(None).args(words).output().unwrap();
        assert!(output.status.success() && output.stdout.len() > 10, "{words:?}");
    }
    let help = String::from_utf8(command(None).arg("--help").output().unwrap().stdout).unwrap();
    assert!(help.contains("Exit codes:") && help.contains("batch"), "{help}");
}
