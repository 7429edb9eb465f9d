//! The binary formats, byte by byte: turn records, transcripts, and values in columns of their own.

use std::collections::BTreeMap;

use bytes::Bytes;
use dacapo_testkit::assert_golden;

use crate::kit::*;

const MANIFEST: &str = env!("CARGO_MANIFEST_DIR");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// Payloads of every kind: inline, without a value, with metadata, with a digest, and kept elsewhere.
fn payloads() -> Vec<Payload> {
    let metadata = BTreeMap::from([("codec".into(), Bytes::from_static(b"zlib")), ("nonce".into(), vec![0xff].into())]);
    let digest = PayloadDigest { key: "2026".into(), value: Bytes::from_static(&[1, 2, 3]) };
    let reference = PayloadReference {
        store: "s3://blobs".into(),
        key: "ab/12".into(),
        size: 5_000_000,
        digest: "sha-256:00ff".into(),
    };
    vec![
        Payload::json("7"),
        Payload::empty(),
        Payload::new("binary/plain".into(), Bytes::from_static(&[0xff, 0])),
        Payload { metadata, ..Payload::json("text") },
        Payload { digest: Some(Box::new(digest)), ..Payload::json("cipher") },
        Payload { data: PayloadData::Reference(Box::new(reference)), ..Payload::json("") },
    ]
}

/// Attributes of every kind.
fn attributes() -> BTreeMap<Name, AttributeValue> {
    BTreeMap::from([
        ("city".into(), "Ulm".into()),
        ("due".into(), Timestamp::from_millis(5).into()),
        ("paid".into(), true.into()),
        ("size".into(), (-7_i64).into()),
        ("tags".into(), vec!["a".to_owned(), "b".to_owned()].into()),
        ("weight".into(), 2.5.into()),
    ])
}

fn failure() -> Failure {
    Failure::application("no").typed("Declined").non_retryable().caused_by(Failure::new(FailureKind::Cancelled, "gone"))
}

/// A turn with all that no story of the golden transcripts records.
fn turn() -> TurnRecord {
    let start = Start {
        workflow: "kit".into(),
        workflow_id: "kit".into(),
        run_id: "run".into(),
        input: payloads(),
        search_attributes: attributes(),
        memo: BTreeMap::from([("note".into(), Payload::json("1"))]),
        ..Start::default()
    };
    let site = CallSite { file: "src/main.rs".into(), line: 4, column: 9 };
    let changes = attributes().into_iter().map(|(name, value)| (name, Some(value))).chain([("gone".into(), None)]);
    let kinds = [
        CommandKind::SearchAttributes(changes.collect()),
        CommandKind::Complete { result: Payload::empty() },
        CommandKind::Fail { failure: Box::new(failure()) },
    ];
    TurnRecord {
        number: 0,
        now: Timestamp::from_millis(1),
        history: History::default(),
        jobs: vec![Job::Start(Box::new(start))],
        commands: kinds.map(|kind| Command { kind, unit: UnitId::root(), site: site.clone() }).into(),
        choices: None,
        build: "1.0.0".into(),
    }
}

/// The turn records of all golden transcripts, and one of everything else, in binary.
#[test]
fn turn_records_are_what_their_number_says() {
    let mut transcripts: Vec<(String, Transcript)> = crate::golden::transcripts();
    let mut others = Transcript::new("kit", Pins::default());
    others.turns.push(turn());
    transcripts.push(("others".to_owned(), others));
    let (mut written, mut number) = (String::new(), 0);
    for (name, transcript) in &transcripts {
        for record in &transcript.turns {
            let bytes = record.to_bytes();
            number = u64::from(bytes[0]);
            written += &format!("{name} {} {}\n", record.number, hex(&bytes));
        }
        written += &format!("{name} whole {}\n", hex(&transcript.to_bytes()));
    }
    let kept = assert_golden(MANIFEST, "turn-records", number, "hex", &written);
    let mut lines = kept.lines();
    for (name, transcript) in &transcripts {
        for record in &transcript.turns {
            let bytes = unhex(lines.next().unwrap().rsplit(' ').next().unwrap());
            assert_eq!(TurnRecord::from_bytes(&bytes).as_ref(), Ok(record), "{name}");
        }
        let bytes = unhex(lines.next().unwrap().rsplit(' ').next().unwrap());
        assert_eq!(Transcript::from_bytes(&bytes).as_ref(), Ok(transcript), "{name}");
        assert_eq!(Transcript::from_text(&transcript.to_text()).as_ref(), Ok(transcript), "{name}");
    }
}

/// A record with another number, and the checksum that belongs to it.
fn with_number(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut later = bytes[..bytes.len() - 4].to_vec();
    later[at] = 2;
    dacapo_testkit::sealed(later)
}

#[test]
fn record_or_transcript_of_a_later_number_is_refused_with_both_numbers() {
    let later = TranscriptError::UnknownVersion { found: 2, known: 1 };
    assert_eq!(TurnRecord::from_bytes(&with_number(&turn().to_bytes(), 0)), Err(later.clone()));
    let transcript = Transcript::new("kit", Pins::default());
    assert_eq!(Transcript::from_bytes(&with_number(&transcript.to_bytes(), 4)), Err(later.clone()));
    let text = transcript.to_text().replace("dacapo transcript 2", "dacapo transcript 3");
    assert_eq!(Transcript::from_text(&text), Err(TranscriptError::UnknownVersion { found: 3, known: 2 }));
    assert_eq!(
        later.to_string(),
        "the transcript has format version 2, and this build reads 1: read it with a newer build"
    );
}

/// Checks that a value is read back from its line.
fn check<T>(lines: &BTreeMap<String, Vec<u8>>, name: &str, value: &T)
where
    T: for<'b> minicbor::Decode<'b, ()> + PartialEq + std::fmt::Debug,
{
    assert_eq!(from_stored::<T>(&lines[name]).as_ref(), Ok(value), "{name}");
}

fn jobs() -> Vec<(&'static str, Job)> {
    let signal = Signal { name: "go".into(), input: payloads(), identity: "cli".into(), ..Signal::default() };
    let update = Update { id: "u-1".into(), name: "add".into(), input: vec!["1".into()], ..Update::default() };
    let resolve = |resolution| Job::resolve(Seq(3), resolution);
    let start = turn().jobs.remove(0);
    let pause = Duration::from_millis(90);
    vec![
        ("start", start),
        ("patch", Job::Patch { id: "faster".into() }),
        ("seed", Job::Seed { seed: 7 }),
        ("signal", Job::Signal(Box::new(signal))),
        ("update", Job::Update(Box::new(update))),
        ("cancel", Job::Cancel { reason: "enough".to_owned() }),
        ("timer", resolve(Resolution::Timer)),
        ("activity", resolve(Resolution::Activity(Outcome::Completed("7".into())))),
        ("activity-failed", resolve(Resolution::Activity(Outcome::Failed(Box::new(failure()))))),
        ("backoff", resolve(Resolution::Backoff { attempt: 2, pause, first_scheduled: Some(Timestamp(5)) })),
        ("run", resolve(Resolution::SideEffect(Outcome::Completed("1".into())))),
        ("child-started", resolve(Resolution::ChildStarted(StartOutcome::As("run-2".into())))),
        ("child", resolve(Resolution::Child(Outcome::Completed("1".into())))),
        ("signalled", resolve(Resolution::SignalExternal { failure: None })),
        ("cancelled", resolve(Resolution::CancelExternal { failure: Some(Box::new(failure())) })),
        ("nexus-started", resolve(Resolution::NexusStarted(StartOutcome::Failed(Box::new(failure()))))),
        ("nexus", resolve(Resolution::Nexus(Outcome::Completed("1".into())))),
        ("promise", resolve(Resolution::Promise(Outcome::Completed("1".into())))),
    ]
}

/// The bodies of messages, and the other values that stores keep in columns of their own.
#[test]
fn stored_values_are_what_their_number_says() {
    let memo: BTreeMap<Name, Payload> = BTreeMap::from([("note".into(), "1".into())]);
    let (pins, result, broken) = (Pins::default(), Outcome::Completed("7".into()), failure());
    let mut values: Vec<(&str, Vec<u8>)> = jobs().iter().map(|(name, job)| (*name, to_stored(job))).collect();
    values.extend([
        ("pins", to_stored(&pins)),
        ("memo", to_stored(&memo)),
        ("result", to_stored(&result)),
        ("failure", to_stored(&broken)),
        ("details", to_stored(&payloads()[0])),
    ]);
    let number = u64::from(values[0].1[0]);
    let written: String = values.iter().map(|(name, bytes)| format!("{name} {}\n", hex(bytes))).collect();
    let kept = assert_golden(MANIFEST, "stored-values", number, "hex", &written);
    let lines = kept.lines().map(|line| line.split_once(' ').unwrap());
    let lines = lines.map(|(name, digits)| (name.to_owned(), unhex(digits))).collect();
    jobs().iter().for_each(|(name, job)| check(&lines, name, job));
    check(&lines, "pins", &pins);
    check(&lines, "memo", &memo);
    check(&lines, "result", &result);
    check(&lines, "failure", &broken);
    check(&lines, "details", &payloads()[0]);
}

#[test]
fn stored_value_of_a_later_number_is_refused_with_both_numbers() {
    let mut later = to_stored(&Payload::json("7"));
    later[0] = 2;
    let refused = from_stored::<Payload>(&later).unwrap_err();
    assert_eq!(refused, StoredError::UnknownFormat { found: 2, known: 1 });
    assert_eq!(
        refused.to_string(),
        "the stored value has format 2, and this build reads format 1: read it with the build that wrote it"
    );
    assert_eq!(from_stored::<Payload>(&[]), Err(StoredError::Empty));
}
