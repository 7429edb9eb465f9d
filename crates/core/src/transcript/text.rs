//! The form of transcripts for people: one line for each job and each command. Golden transcripts are kept and reviewed
//! in this form, and it can be read back.

use std::fmt::Write;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Transcript, TranscriptError, TurnRecord};
use crate::activation::History;
use crate::{CallSite, Command, CommandKind, Job, Name, Pins, Timestamp, UnitId};

const TITLE: &str = "dacapo transcript ";
const VERSION: u64 = 2;

/// The data on the line of a turn, besides its number.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnLine {
    now: Timestamp,
    #[serde(default, skip_serializing_if = "no_history")]
    history: History,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    build: Name,
}

fn no_history(history: &History) -> bool {
    *history == History::default()
}

impl Transcript {
    /// Returns the form for people.
    pub fn to_text(&self) -> String {
        let mut text = format!("{TITLE}{VERSION}\nworkflow {} {}\n", json(&self.workflow), json(&self.pins));
        for turn in &self.turns {
            turn.write(&mut text).expect("writing to memory cannot fail");
        }
        text
    }

    /// Reads what [`Transcript::to_text`] wrote. Blank lines and lines that begin with `//` are passed over.
    pub fn from_text(text: &str) -> Result<Self, TranscriptError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !is_comment(line));
        let (_, title) = lines.next().ok_or(TranscriptError::NotATranscript)?;
        let version = title.strip_prefix(TITLE).ok_or(TranscriptError::NotATranscript)?;
        match version.trim().parse() {
            Ok(VERSION) => {}
            Ok(found) => return Err(TranscriptError::UnknownVersion { found, known: VERSION }),
            Err(_) => return Err(TranscriptError::NotATranscript),
        }
        let mut transcript: Option<Self> = None;
        for (number, line) in lines {
            let bad = |problem: String| TranscriptError::BadLine { line: number + 1, problem };
            let (word, rest) = line.trim().split_once(' ').ok_or_else(|| bad("it holds one word".to_owned()))?;
            let mut values = Values::new(rest);
            match (word, &mut transcript) {
                ("workflow", None) => {
                    let (workflow, pins): (Name, Pins) = (values.next().map_err(bad)?, values.next().map_err(bad)?);
                    transcript = Some(Self::new(workflow, pins));
                }
                ("workflow", Some(_)) => return Err(bad("a transcript is of one workflow".to_owned())),
                (_, None) => return Err(bad("a transcript begins with its workflow".to_owned())),
                (word, Some(transcript)) => transcript.read_line(word, &mut values).map_err(bad)?,
            }
            values.finish().map_err(bad)?;
        }
        transcript.ok_or(TranscriptError::NotATranscript)
    }

    fn read_line(&mut self, word: &str, values: &mut Values<'_>) -> Result<(), String> {
        if word == "turn" {
            let (number, line): (u64, TurnLine) = (values.next()?, values.next()?);
            if number != self.turns.len() as u64 {
                return Err(format!("turn {} comes next, not turn {number}", self.turns.len()));
            }
            let TurnLine { now, history, build } = line;
            let record =
                TurnRecord { number, now, history, jobs: Vec::new(), commands: Vec::new(), choices: None, build };
            self.turns.push(record);
            return Ok(());
        }
        let turn = self.turns.last_mut().ok_or("no turn has begun")?;
        match word {
            "job" => turn.jobs.push(values.next::<Job>()?),
            "command" => {
                let unit: UnitId = values.next()?;
                let kind: CommandKind = values.next()?;
                let site: CallSite = values.next()?;
                turn.commands.push(Command { kind, unit, site });
            }
            "choices" => turn.choices = Some(values.next()?),
            other => return Err(format!("{other:?} is none of workflow, turn, job, command, choices")),
        }
        Ok(())
    }
}

impl TurnRecord {
    fn write(&self, text: &mut String) -> std::fmt::Result {
        let line = TurnLine { now: self.now, history: self.history, build: self.build.clone() };
        writeln!(text, "turn {} {}", self.number, json(&line))?;
        for job in &self.jobs {
            writeln!(text, "  job {}", json(job))?;
        }
        for Command { kind, unit, site } in &self.commands {
            // A null value in these maps removes an entry of the run's, so nothing may be left out.
            let kind = match kind {
                CommandKind::SearchAttributes(_) | CommandKind::Memo(_) => {
                    serde_json::to_string(kind).unwrap_or_default()
                }
                kind => json(kind),
            };
            writeln!(text, "  command {} {kind} {}", json(unit), json(site))?;
        }
        match &self.choices {
            Some(choices) => writeln!(text, "  choices {}", serde_json::to_string(choices).unwrap_or_default()),
            None => Ok(()),
        }
    }
}

fn is_comment(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with("//")
}

/// Writes one value on one line, without fields that are null and without empty lists.
fn json(value: &impl Serialize) -> String {
    let mut value = serde_json::to_value(value).expect("the types of a transcript are all writable");
    prune(&mut value);
    value.to_string()
}

fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // The only field of an object may be the tag of a value that is an empty list.
            let is_tag = fields.len() == 1;
            let is_empty = |field: &Value| !is_tag && field.as_array().is_some_and(Vec::is_empty);
            fields.retain(|_, field| !field.is_null() && !is_empty(field));
            fields.values_mut().for_each(prune);
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

/// The values on a line, one after the other.
struct Values<'a>(serde_json::StreamDeserializer<'a, serde_json::de::StrRead<'a>, Value>);

impl<'a> Values<'a> {
    fn new(text: &'a str) -> Self {
        Self(serde_json::Deserializer::from_str(text).into_iter())
    }

    fn next<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        let value = self.0.next().ok_or("something is missing at its end")?.map_err(|error| error.to_string())?;
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    fn finish(&mut self) -> Result<(), String> {
        self.0.next().map_or(Ok(()), |_| Err("something follows its end".to_owned()))
    }
}
