//! Transcripts that are damaged, cut, forged or nonsense: a typed error each, never a panic, never a hang, and never
//! another program.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dacapo_core::{Pins, PolicySpec, Rng, RunOptions, Transcript, TranscriptError, TurnRecord, Workflow};
use dacapo_testkit::sealed;

use crate::coverage::Marks;
use crate::examine::Case;

/// What every transcript begins with: its mark and its version.
fn header() -> Vec<u8> {
    b"dcpt\x01".to_vec()
}

/// Small recordings that between them hold every sort of command and job.
fn recordings() -> Vec<(Workflow, Transcript)> {
    let cases = (11_000_000..).map(Case::draw).take(60).enumerate();
    let drawn = cases.map(|(place, case)| {
        let random = PolicySpec::Random { seed: case.seed };
        let policy = if place % 3 == 0 { random } else { PolicySpec::Deterministic };
        let case = Case { pins: Pins { policy, ..case.pins.clone() }, ..case };
        let transcript = case.record(&Marks::default()).expect("it plays").transcript;
        (case.workflow(), transcript)
    });
    drawn.collect()
}

/// Reading and, if it can be read, replaying it does not panic. Says whether it could be read.
fn survives(workflow: &Workflow, bytes: &[u8]) -> bool {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let transcript = Transcript::from_bytes(bytes).ok()?;
        let options = RunOptions { double_play: false, ..RunOptions::default() };
        drop(transcript.replay(workflow, options));
        assert_eq!(
            Transcript::from_bytes(&transcript.to_bytes()).as_ref(),
            Ok(&transcript),
            "what was read is written"
        );
        Some(())
    }));
    result.unwrap_or_else(|_| panic!("panicked on {}", hex(bytes))).is_some()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_transcript_cut_at_any_byte_is_an_error() {
    for (_, transcript) in recordings() {
        let bytes = transcript.to_bytes();
        for length in 0..bytes.len() {
            let error = Transcript::from_bytes(&bytes[..length]).expect_err("it is cut");
            assert!(matches!(error, TranscriptError::NotATranscript | TranscriptError::Damaged), "{length}: {error}");
        }
        for record in &transcript.turns {
            let bytes = record.to_bytes();
            for length in 0..bytes.len() {
                let error = TurnRecord::from_bytes(&bytes[..length]).expect_err("it is cut");
                assert_eq!(error, TranscriptError::Damaged, "{length}");
            }
        }
    }
}

#[test]
fn a_transcript_with_any_bit_flipped_is_an_error() {
    for (_, transcript) in recordings().into_iter().take(8) {
        let mut bytes = transcript.to_bytes();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            Transcript::from_bytes(&bytes).expect_err("a bit is flipped");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(Transcript::from_bytes(&bytes), Ok(transcript));
    }
}

#[test]
fn a_transcript_followed_by_anything_is_an_error() {
    let (_, transcript) = recordings().remove(0);
    let mut bytes = transcript.to_bytes();
    let body = bytes.len() - 4;
    bytes.push(0);
    assert_eq!(Transcript::from_bytes(&bytes), Err(TranscriptError::Damaged));
    bytes.truncate(body);
    bytes.push(0xf6);
    let error = Transcript::from_bytes(&sealed(bytes)).expect_err("something follows");
    assert!(matches!(error, TranscriptError::Malformed(_)), "{error}");
}

/// The checksum is no secret: an attacker who forges a record can compute it, and still only gets errors.
#[test]
fn forged_transcripts_are_read_or_refused_and_never_panic() {
    let mut rng = Rng::from_seed(17);
    let (mut read, mut refused) = (0, 0);
    for (workflow, transcript) in recordings() {
        let bytes = transcript.to_bytes();
        let body = &bytes[..bytes.len() - 4];
        for _ in 0..300 {
            let mut forged = body.to_vec();
            for _ in 0..1 + rng.below(3) {
                let place = 5 + rng.below(forged.len() as u64 - 5) as usize;
                match rng.below(4) {
                    0 => forged[place] ^= 1 << rng.below(8),
                    1 => forged[place] = rng.next_u64() as u8,
                    2 => drop(forged.drain(place..(place + 1 + rng.below(9) as usize).min(forged.len()))),
                    _ => forged.insert(place, rng.next_u64() as u8),
                }
                if forged.len() < 6 {
                    break;
                }
            }
            match survives(&workflow, &sealed(forged)) {
                true => read += 1,
                false => refused += 1,
            }
        }
    }
    assert!(read > 100 && refused > 100, "{read} were read and {refused} refused");
}

#[test]
fn a_forged_cut_at_any_byte_is_malformed() {
    let (workflow, transcript) = recordings().remove(1);
    let bytes = transcript.to_bytes();
    for length in 5..bytes.len() - 4 {
        assert!(!survives(&workflow, &sealed(bytes[..length].to_vec())), "cut at {length}");
    }
}

#[test]
fn generated_garbage_is_an_error() {
    let mut rng = Rng::from_seed(18);
    let workflow = Case::draw(0).workflow();
    for length in 0..4000 {
        let mut garbage: Vec<u8> = (0..length % 97).map(|_| rng.next_u64() as u8).collect();
        assert!(!survives(&workflow, &garbage), "no header at all");
        let mut whole = header();
        whole.append(&mut garbage);
        assert!(!survives(&workflow, &whole), "no checksum");
        assert!(!survives(&workflow, &sealed(whole.clone())), "a checksum over nonsense: {}", hex(&whole));
        let error = TurnRecord::from_bytes(&sealed(whole[4..].to_vec())).expect_err("nonsense");
        assert!(matches!(error, TranscriptError::Malformed(_)), "{error}");
    }
}

/// Nothing that is written small may cost much: not stack, not memory.
#[test]
fn deep_nesting_and_huge_lengths_are_errors() {
    let deep: [&[u8]; 6] = [&[0x81], &[0x9f], &[0xa1, 0x00], &[0xbf, 0x00], &[0xc1], &[0x82, 0x00]];
    for unit in deep {
        let mut bytes = header();
        bytes.extend(unit.iter().cycle().take(200_000));
        let error = Transcript::from_bytes(&sealed(bytes)).expect_err("nested");
        assert!(matches!(error, TranscriptError::Malformed(_)), "{error}");
    }
    for major in [0x5b, 0x7b, 0x9b, 0xbb] {
        for (_, transcript) in recordings().into_iter().take(3) {
            let bytes = transcript.to_bytes();
            let body = &bytes[..bytes.len() - 4];
            for place in 5..body.len() {
                let mut forged = body[..place].to_vec();
                forged.push(major);
                forged.extend(u64::MAX.to_be_bytes());
                forged.extend(&body[place..]);
                let error = Transcript::from_bytes(&sealed(forged)).expect_err("longer than anything");
                assert!(matches!(error, TranscriptError::Malformed(_)), "{error}");
            }
        }
    }
}

#[test]
fn texts_nested_deeply_are_errors() {
    let (_, transcript) = recordings().remove(0);
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let causes = format!("{}{}", r#"{"kind":"application","message":"","cause":"#.repeat(5_000), "null");
    for value in [nested.clone(), format!(r#"{{"resolve":{{"seq":0,"resolution":{nested}}}}}"#), causes] {
        let text = format!("{}\n  job {value}\n", transcript.to_text());
        let error = Transcript::from_text(&text).expect_err("nested");
        assert!(matches!(error, TranscriptError::BadLine { .. }), "{error}");
    }
}

/// Every line of a text removed, doubled, cut and garbled.
#[test]
fn texts_with_a_changed_line_are_read_or_refused_and_never_panic() {
    let mut rng = Rng::from_seed(19);
    let read = |workflow: &Workflow, text: &str| {
        let result = catch_unwind(AssertUnwindSafe(|| match Transcript::from_text(text) {
            Ok(transcript) => {
                drop(transcript.replay(workflow, RunOptions { double_play: false, ..RunOptions::default() }));
                None
            }
            Err(error) => Some(error),
        }));
        result.unwrap_or_else(|_| panic!("panicked on\n{text}"))
    };
    for (workflow, transcript) in recordings().into_iter().take(12) {
        let text = transcript.to_text();
        let lines: Vec<&str> = text.lines().collect();
        for place in 0..lines.len() {
            let with = |line: &[&str]| [&lines[..place], line, &lines[place + 1..]].concat().join("\n");
            let removed = read(&workflow, &with(&[]));
            let doubled = read(&workflow, &with(&[lines[place], lines[place]]));
            match lines[place].split_whitespace().next() {
                Some("dacapo") => {
                    assert_eq!(removed, Some(TranscriptError::NotATranscript));
                    assert!(matches!(doubled, Some(TranscriptError::BadLine { line: 2, .. })), "{doubled:?}");
                }
                Some("workflow") => {
                    assert!(removed.is_some(), "a transcript is of a workflow");
                    assert!(matches!(doubled, Some(TranscriptError::BadLine { .. })), "{doubled:?}");
                }
                Some("turn") => assert!(matches!(doubled, Some(TranscriptError::BadLine { .. })), "{doubled:?}"),
                _ => {}
            }
            let cut = lines[place].char_indices().nth(rng.below(lines[place].len() as u64) as usize);
            read(&workflow, &with(&[&lines[place][..cut.map_or(0, |(at, _)| at)]]));
            let mut garbled: Vec<char> = lines[place].chars().collect();
            let at = rng.below(garbled.len() as u64) as usize;
            garbled[at] = ['"', '{', ']', '9', ' ', '\\', '\u{fffd}', '-'][rng.below(8) as usize];
            read(&workflow, &with(&[&garbled.into_iter().collect::<String>()]));
        }
    }
}

#[test]
fn generated_text_is_no_transcript() {
    let mut rng = Rng::from_seed(20);
    let words = [
        "dacapo transcript 2",
        "dacapo transcript 3",
        "dacapo",
        "workflow",
        "\"kit\"",
        "{\"semantics\":1}",
        "turn",
        "0",
        "job",
        "command",
        "choices",
        "{",
        "}",
        "[]",
        "null",
        "//",
        "\n",
        "\n",
        "\n",
        " ",
        "18446744073709551616",
    ];
    for _ in 0..5000 {
        let text: Vec<&str> = (0..rng.below(30)).map(|_| words[rng.below(words.len() as u64) as usize]).collect();
        let result = catch_unwind(|| Transcript::from_text(&text.join(" ")));
        assert!(result.is_ok(), "panicked on {text:?}");
    }
}

/// A duration of too many seconds and too many nanoseconds is nonsense that a careless reader adds up.
#[test]
fn a_duration_beyond_all_durations_is_an_error() {
    let (_, mut transcript) = recordings().remove(0);
    let pause = std::time::Duration::new(u64::MAX, 999_999_999);
    let backoff = dacapo_core::Resolution::Backoff { attempt: 2, pause, first_scheduled: None };
    transcript.turns[0].jobs = vec![dacapo_core::Job::resolve(dacapo_core::Seq(0), backoff)];
    let mut bytes = transcript.to_bytes();
    bytes.truncate(bytes.len() - 4);
    let nanos = [0x1a, 0x3b, 0x9a, 0xc9, 0xff];
    let place = bytes.windows(5).position(|window| window == nanos).expect("the nanoseconds are in there");
    bytes[place + 1..place + 5].fill(0xff);
    let error = catch_unwind(|| Transcript::from_bytes(&sealed(bytes))).expect("no panic").expect_err("it overflows");
    assert!(matches!(error, TranscriptError::Malformed(_)), "{error}");
}
