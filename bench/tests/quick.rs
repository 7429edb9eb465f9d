//! A little of every workload: each prints its lines, and what it checks is right.

use std::process::Command;

use dacapo_bench_meter::Line;

fn bench(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_dacapo-bench")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The checks of results are the bench's own: it fails if a run is lost or has another result.
#[test]
fn every_workload_prints_lines_that_can_be_read_and_makes_a_table() {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let text = bench(&["--quick", "--dir", folder]);
    let lines: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let named: Vec<(&str, &str)> = lines.iter().map(|line| (line.workload.as_str(), line.system.as_str())).collect();
    let bare = ["dacapo", "bare_commit", "bare_commit_same_thread"];
    let mut expected = vec![("w1", "dacapo"), ("w1", "prototype"), ("w2", "dacapo"), ("w2", "prototype")];
    expected.extend(["w3_50", "w3_100", "w4"].iter().flat_map(|workload| bare.map(|system| (*workload, system))));
    expected.extend([("w5", "dacapo"), ("w6", "dacapo"), ("w6", "prototype")]);
    assert_eq!(named, expected);
    for line in &lines {
        assert!(line.n > 0 && line.throughput > 0.0 && line.p50_ms > 0.0, "{line:?}");
    }
    let file = std::path::Path::new(folder).join("quick.jsonl");
    std::fs::write(&file, &text).unwrap();
    let table = bench(&["table", file.to_str().unwrap()]);
    assert_eq!(table.lines().filter(|line| line.starts_with("| W")).count(), 11, "{table}");
}

/// Durable work cannot be done with fewer flushes than commits that follow one another.
#[cfg(target_os = "linux")]
#[test]
fn every_step_of_a_lone_workflow_is_flushed() {
    let text = bench(&["--quick", "--only", "w3", "--dir", env!("CARGO_TARGET_TMPDIR")]);
    for line in text.lines().map(|line| serde_json::from_str::<Line>(line).expect(line)) {
        assert!(line.fsyncs >= line.n, "{line:?}");
    }
}

#[test]
fn unknown_workload_is_refused_with_the_help_page() {
    let output = Command::new(env!("CARGO_BIN_EXE_dacapo-bench")).args(["--only", "w9"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("`w9` is no workload"));
}

/// Healthy runs finish in any company, and all that grows can be drawn.
#[test]
fn company_and_growth_print_lines_that_can_be_read() {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let text = bench(&["company", "--quick", "--dir", folder]);
    let lines: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let systems: Vec<&str> = lines.iter().map(|line| line.system.as_str()).collect();
    assert_eq!(systems, ["alone", "bad_company", "blocking_activities"]);
    let text = bench(&["growth", "--quick", "--dir", folder]);
    assert_eq!(text.lines().count(), 20);
    let file = std::path::Path::new(folder).join("growth.jsonl");
    std::fs::write(&file, &text).unwrap();
    let picture = bench(&["plot", file.to_str().unwrap()]);
    assert_eq!((picture.matches("<polyline").count(), picture.matches("<circle").count()), (5, 20), "{picture}");
}
