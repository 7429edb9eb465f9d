//! The compact form of transcripts and turns, for stores. It carries a version, so that later builds can recognise it,
//! and a checksum, so that a damaged record is an error and is never read as another record.

use minicbor::decode::Decoder;
use minicbor::{Decode, Encode};
use thiserror::Error;

use super::{Transcript, TurnRecord};
use crate::{Name, Pins};

/// The version of the binary form that this build writes.
const VERSION: u8 = 1;
const TRANSCRIPT: &[u8; 4] = b"dcpt";
const CHECKSUM: usize = 4;

/// The error of bytes or text that cannot be read as a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// The bytes do not begin as a transcript does.
    #[error("this is no transcript")]
    NotATranscript,
    /// A later build wrote it.
    #[error("the transcript has format version {found}, and this build reads {known}: read it with a newer build")]
    UnknownVersion {
        /// The version found.
        found: u64,
        /// The newest version this build reads.
        known: u64,
    },
    /// The checksum does not match.
    #[error("the record is damaged: its checksum does not match. Restore it from a backup")]
    Damaged,
    /// The checksum matches, but the bytes cannot be decoded.
    #[error("the record cannot be read: {0}")]
    Malformed(String),
    /// A line of a text transcript cannot be read.
    #[error("line {line} of the transcript cannot be read: {problem}")]
    BadLine {
        /// The line's number, from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
}

impl TurnRecord {
    /// Returns the compact form, for stores.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Most turns fit: growing from nothing would copy them several times.
        let mut bytes = Vec::with_capacity(512);
        bytes.push(VERSION);
        encode(self, &mut bytes);
        seal(bytes)
    }

    /// Reads what [`TurnRecord::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TranscriptError> {
        let bytes = checked(bytes)?;
        let (version, body) = bytes.split_first().ok_or(TranscriptError::NotATranscript)?;
        check_version(*version)?;
        let mut decoder = Decoder::new(body);
        let record = decode(&mut decoder)?;
        finished(&decoder)?;
        Ok(record)
    }
}

impl Transcript {
    /// Returns the compact form of the whole transcript.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = TRANSCRIPT.to_vec();
        bytes.push(VERSION);
        encode(&self.workflow, &mut bytes);
        encode(&self.pins, &mut bytes);
        encode(&self.turns, &mut bytes);
        seal(bytes)
    }

    /// Reads what [`Transcript::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TranscriptError> {
        let rest = bytes.strip_prefix(TRANSCRIPT).ok_or(TranscriptError::NotATranscript)?;
        let version = rest.first().ok_or(TranscriptError::Damaged)?;
        check_version(*version)?;
        let bytes = checked(bytes)?;
        let body = bytes.get(TRANSCRIPT.len() + 1..).ok_or(TranscriptError::Damaged)?;
        let mut decoder = Decoder::new(body);
        let workflow: Name = decode(&mut decoder)?;
        let pins: Pins = decode(&mut decoder)?;
        let turns = decode(&mut decoder)?;
        finished(&decoder)?;
        Ok(Self { workflow, pins, turns })
    }
}

fn encode<T: Encode<()>>(value: &T, bytes: &mut Vec<u8>) {
    minicbor::encode(value, bytes).expect("writing to memory cannot fail");
}

fn decode<'b, T: Decode<'b, ()>>(decoder: &mut Decoder<'b>) -> Result<T, TranscriptError> {
    decoder.decode().map_err(|error| TranscriptError::Malformed(error.to_string()))
}

fn finished(decoder: &Decoder<'_>) -> Result<(), TranscriptError> {
    match decoder.position() == decoder.input().len() {
        true => Ok(()),
        false => Err(TranscriptError::Malformed(format!("something follows its end at byte {}", decoder.position()))),
    }
}

fn check_version(version: u8) -> Result<(), TranscriptError> {
    match version {
        VERSION => Ok(()),
        found => Err(TranscriptError::UnknownVersion { found: found.into(), known: VERSION.into() }),
    }
}

fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = crc32fast::hash(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

fn checked(bytes: &[u8]) -> Result<&[u8], TranscriptError> {
    let (body, sum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(TranscriptError::Damaged)?;
    if crc32fast::hash(body) == u32::from_le_bytes(*sum) { Ok(body) } else { Err(TranscriptError::Damaged) }
}
