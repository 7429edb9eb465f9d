//! The kept corpus: transcripts that once were, or could be, brought to the core, each with what must be said to it in
//! its first line. `.txt` files are in the form for people, `.hex` files in the compact form.
#![allow(clippy::disallowed_methods, reason = "the corpus is kept in files")]

use std::path::PathBuf;
use std::time::Duration;

use dacapo_core::{
    ActivationError, CommandKind, Ctx, Failure, JobError, OperationId, Payload, RunOptions, Seq, Transcript,
    TranscriptError, Workflow,
};

/// What the corpus was recorded with.
async fn trial(ctx: Ctx) -> Result<Payload, Failure> {
    let receipt = ctx.activity("charge", "ada").await?;
    ctx.sleep(Duration::from_secs(14)).await?;
    let branch = |name: &'static str| {
        let ctx = ctx.clone();
        async move { ctx.set_state(name, "done") }
    };
    ctx.parallel([branch("left"), branch("right")]).await;
    Ok(receipt)
}

fn workflow() -> Workflow {
    Workflow::new("trial", |ctx, _| trial(ctx))
}

/// What becomes of a transcript, in the words that the first line of a file uses.
fn answer(read: Result<Transcript, TranscriptError>) -> String {
    let transcript = match read {
        Ok(transcript) => transcript,
        Err(TranscriptError::NotATranscript) => return "not a transcript".to_owned(),
        Err(TranscriptError::UnknownVersion { .. }) => return "unknown version".to_owned(),
        Err(TranscriptError::Damaged) => return "damaged".to_owned(),
        Err(TranscriptError::Malformed(_)) => return "malformed".to_owned(),
        Err(TranscriptError::BadLine { line, .. }) => return format!("bad line {line}"),
        Err(other) => return other.to_string(),
    };
    let options = RunOptions { double_play: false, ..RunOptions::default() };
    let Err(failed) = transcript.replay(&workflow(), options) else { return "replays".to_owned() };
    let what = match &*failed.error {
        ActivationError::Nondeterminism(report) => format!("nondeterminism at command {}", report.position),
        ActivationError::Job(error) => word_of_job_error(error),
        ActivationError::Policy(_) => "policy".to_owned(),
        ActivationError::Closed => "closed".to_owned(),
        ActivationError::UnknownSemantics { .. } => "unknown semantics".to_owned(),
        other => other.to_string(),
    };
    format!("turn {}: {what}", failed.turn)
}

fn word_of_job_error(error: &JobError) -> String {
    match error {
        JobError::NotStarted => "not started".to_owned(),
        JobError::StartedTwice => "started twice".to_owned(),
        JobError::OtherWorkflow { found, .. } => format!("other workflow {found}"),
        JobError::OutOfOrder { expected, found } => format!("turn {found} in the place of turn {expected}"),
        JobError::UnknownSeq(seq) => format!("unknown seq {seq}"),
        JobError::WrongKind { seq, .. } => format!("wrong kind {seq}"),
        JobError::ResolvedTwice(seq) => format!("resolved twice {seq}"),
        other => other.to_string(),
    }
}

fn files(directory: &str) -> Vec<(PathBuf, String)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(directory);
    let entries = std::fs::read_dir(&directory).expect("the directory is kept in the tree");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    files.sort();
    files.into_iter().filter_map(|path| Some((path.clone(), std::fs::read_to_string(path).ok()?))).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.lines().skip(1).flat_map(str::bytes).filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("digits");
    digits.chunks_exact(2).map(byte).collect()
}

#[test]
fn every_file_of_the_corpus_is_answered_as_it_says() {
    let files = files("corpus");
    assert!(files.len() >= 25, "the corpus is kept, not pruned: {} files", files.len());
    let mut wrong = Vec::new();
    for (path, text) in files {
        let first = text.lines().next().unwrap_or_default();
        let expected = first.strip_prefix("// ").unwrap_or_else(|| panic!("{path:?} says nothing of itself"));
        let read = match path.extension().and_then(|extension| extension.to_str()) {
            Some("hex") => Transcript::from_bytes(&from_hex(&text)),
            _ => Transcript::from_text(&text),
        };
        let answer = answer(read);
        if answer != expected {
            wrong.push(format!("{}: {answer}, and it says {expected}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// S4-7
#[test]
fn operation_ids_in_all_corpora_are_uuids() {
    let mut seen = 0;
    for (path, text) in ["corpus", "golden"].into_iter().flat_map(files) {
        let written = text.lines().filter(|line| line.trim_start().starts_with("command "));
        for line in written {
            for id in line.match_indices("\"id\":\"").filter_map(|(at, mark)| line[at + mark.len()..].split('"').next())
            {
                assert!(is_uuid(id) || line.contains("\"patch\""), "{path:?}: {id:?} is no UUID");
                seen += 1;
            }
        }
        let Ok(transcript) = Transcript::from_text(&text) else { continue };
        for command in transcript.turns.iter().flat_map(|turn| &turn.commands) {
            let id = match &command.kind {
                CommandKind::Activity(c) => c.id,
                CommandKind::LocalActivity(c) => c.id,
                CommandKind::SideEffect(c) => c.id,
                CommandKind::Promise(c) => c.id,
                _ => continue,
            };
            assert!(is_uuid(&id.to_string()), "{path:?}: {id} is no UUID");
        }
    }
    assert!(seen > 10, "the corpora hold operations: {seen}");
    assert!((0..10_000).all(|seq| is_uuid(&OperationId::of(7, Seq(seq)).to_string())));
    assert!(!is_uuid("not-a-uuid") && !is_uuid(&"0".repeat(36)));
}

/// `xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx`, in small letters.
fn is_uuid(text: &str) -> bool {
    let fits = |(place, letter): (usize, char)| match place {
        8 | 13 | 18 | 23 => letter == '-',
        14 => letter == '4',
        19 => matches!(letter, '8' | '9' | 'a' | 'b'),
        _ => letter.is_ascii_digit() || ('a'..='f').contains(&letter),
    };
    text.len() == 36 && text.chars().enumerate().all(fits)
}
