//! The effective settings: every setting, its value, and its origin.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;

use dacapo_core::Name;

use super::error::{SettingError, SettingErrors};
use super::names::{self, PREFIX, TOOLS, queue_variable};
use super::setting::{Raw, Setting, SettingScope, SettingUnit};
use super::table::{APPLICATION, AppValues, QUEUE, QueueValues, all_settings};
use super::value::{self, Reading};
use super::{AppSettings, Given, QueueSettings, Value};

/// The effective settings. Prints as a table with one line for each setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// The values of the application.
    pub app: AppValues,
    /// The values of each queue.
    pub queues: BTreeMap<Name, QueueValues>,
    /// All settings, with their origins.
    pub rows: Vec<EffectiveRow>,
}

/// One effective setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveRow {
    /// The queue. None for a setting of the application.
    pub queue: Option<Name>,
    /// The setting's name.
    pub name: &'static str,
    /// The value, in the form in which it can be written.
    pub value: String,
    /// The setting's unit.
    pub unit: SettingUnit,
    /// The value's origin.
    pub origin: SettingOrigin,
}

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// No code and no variable set it.
    Default,
    /// This environment variable set it.
    Environment(String),
    /// The program's code set it.
    Code,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Environment(variable) => write!(f, "environment ({variable})"),
            Self::Code => f.write_str("code"),
        }
    }
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells = self.rows.iter().map(|row| {
            let scope = row.queue.as_ref().map_or_else(|| "application".to_owned(), |queue| format!("queue {queue:?}"));
            [scope, row.name.to_owned(), row.value.clone(), row.unit.to_string(), row.origin.to_string()]
        });
        let head = ["scope", "setting", "value", "unit", "from"].map(str::to_owned);
        let cells: Vec<[String; 5]> = std::iter::once(head).chain(cells).collect();
        let wide = |at: usize| cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let (a, b, c, d) = (wide(0), wide(1), wide(2), wide(3));
        for [scope, name, value, unit, origin] in &cells {
            writeln!(f, "{scope:<a$}  {name:<b$}  {value:<c$}  {unit:<d$}  {origin}")?;
        }
        Ok(())
    }
}

/// The settings of one source: for each setting a value, and the name under which it was given.
#[derive(Default)]
struct Layer(BTreeMap<&'static str, (Raw, String)>);

impl Layer {
    fn put(&mut self, setting: &'static Setting, by: &str, raw: Raw) -> Result<(), SettingError> {
        let written = |raw: &Raw| setting.shown(raw);
        match self.0.insert(setting.name, (raw.clone(), by.to_owned())) {
            Some((before, one)) if before != raw => Err(SettingError::Conflict {
                setting: setting.name,
                one,
                one_value: written(&before),
                other: by.to_owned(),
                other_value: written(&raw),
            }),
            _ => Ok(()),
        }
    }
}

/// The settings that the environment gives.
#[derive(Default)]
struct Environment {
    app: Layer,
    all_queues: Layer,
    queues: BTreeMap<Name, Layer>,
}

/// The sources of a setting, the strongest first.
type Voices<'a> = [(&'a Layer, fn(&str) -> SettingOrigin)];

impl Effective {
    pub(super) fn of(settings: &AppSettings) -> Result<Self, SettingErrors> {
        let mut errors = queue_errors(&settings.queues);
        let environment = Environment::read(&settings.environment, &settings.queues, &mut errors);
        let code = layer_of(&settings.given, None, &mut errors);
        let from_code: fn(&str) -> SettingOrigin = |_| SettingOrigin::Code;
        let from_environment: fn(&str) -> SettingOrigin = |by| SettingOrigin::Environment(by.to_owned());

        let mut rows = Vec::new();
        let app = effective(None, APPLICATION, &[(&code, from_code), (&environment.app, from_environment)], &mut rows);
        let every = layer_of(&settings.every_queue, Some(&Name::from_static("*")), &mut errors);
        let mut queues = BTreeMap::new();
        for QueueSettings { queue, given } in &settings.queues {
            let (code, none) = (layer_of(given, Some(queue), &mut errors), Layer::default());
            let own = environment.queues.get(queue).unwrap_or(&none);
            let voices = [
                (&code, from_code),
                (&every, from_code),
                (own, from_environment),
                (&environment.all_queues, from_environment),
            ];
            let raw = effective(Some(queue), QUEUE, &voices, &mut rows);
            errors.extend(disorder(queue, &raw, app["force_exit_timeout"].number()));
            queues.insert(queue.clone(), QueueValues::read(|name| raw[name].clone()));
        }
        match errors.is_empty() {
            true => Ok(Self { app: AppValues::read(|name| app[name].clone()), queues, rows }),
            false => Err(SettingErrors(errors)),
        }
    }
}

fn queue_errors(queues: &[QueueSettings]) -> Vec<SettingError> {
    let mut seen = BTreeSet::new();
    let problem = |queue: &Name| match (queue.is_empty(), seen.insert(queue.clone())) {
        (true, _) => Some(SettingError::NamelessQueue),
        (false, false) => Some(SettingError::QueueTwice { queue: queue.to_string() }),
        (false, true) => None,
    };
    queues.iter().map(|settings| &settings.queue).filter_map(problem).collect()
}

/// Reads the settings that code gave for a queue, or for the application.
fn layer_of(given: &Given, queue: Option<&Name>, errors: &mut Vec<SettingError>) -> Layer {
    let mut layer = Layer::default();
    for (name, given) in &given.0 {
        errors.extend(take_given(&mut layer, name, given, queue).err());
    }
    layer
}

fn take_given(layer: &mut Layer, name: &str, given: &Value, queue: Option<&Name>) -> Result<(), SettingError> {
    let by = queue.map_or_else(|| name.to_owned(), |queue| format!("{name} of queue {queue:?}"));
    let (setting, reading) = names::in_code(name).ok_or_else(|| unknown(by.clone(), name))?;
    match (setting.scope, queue) {
        (SettingScope::Application, None) | (SettingScope::Queue, Some(_)) => {}
        (SettingScope::Application, Some(queue)) => {
            return Err(SettingError::NotOfAQueue { by: name.to_owned(), queue: queue.to_string() });
        }
        (SettingScope::Queue, None) => return Err(SettingError::NotOfTheApplication { by }),
    }
    let raw = match given {
        Value::Raw(raw) => value::within(setting, &by, raw.clone())?,
        Value::Text(text) => value::parse(setting, &by, text, reading)?,
    };
    layer.put(setting, &by, raw)
}

fn unknown(by: String, name: &str) -> SettingError {
    let nearest = names::nearest(name, all_settings().map(|setting| setting.name));
    // In the spelling of the source in which it was read.
    let written = |nearest: &str| match by.strip_suffix(name).filter(|variable| variable.starts_with(PREFIX)) {
        Some(variable) => format!("{variable}{}", nearest.to_ascii_uppercase()),
        None => nearest.to_owned(),
    };
    SettingError::Unknown { nearest: nearest.map(written), by }
}

impl Environment {
    fn read(variables: &[(OsString, OsString)], queues: &[QueueSettings], errors: &mut Vec<SettingError>) -> Self {
        let mut environment = Self::default();
        let mut ours: Vec<(String, &OsStr)> = variables
            .iter()
            .map(|(name, text)| (name.to_string_lossy().into_owned(), text.as_os_str()))
            .filter(|(name, _)| name.starts_with(PREFIX) && !TOOLS.contains(&name.as_str()))
            .collect();
        // An environment has no order, and errors should not change theirs.
        ours.sort();
        for (variable, text) in ours {
            errors.extend(environment.take(&variable, text, queues).err());
        }
        environment
    }

    fn take(&mut self, variable: &str, text: &OsStr, queues: &[QueueSettings]) -> Result<(), SettingError> {
        let (layer, setting, reading) = match variable.strip_prefix(&format!("{PREFIX}QUEUE_")) {
            Some(rest) => {
                let (queue, setting, reading) = of_a_queue(variable, rest, queues)?;
                (self.queues.entry(queue).or_default(), setting, reading)
            }
            None => {
                let name = &variable[PREFIX.len()..];
                let (setting, reading) =
                    names::in_environment(name).ok_or_else(|| unknown(variable.to_owned(), name))?;
                let layer = match setting.scope {
                    SettingScope::Application => &mut self.app,
                    SettingScope::Queue => &mut self.all_queues,
                };
                (layer, setting, reading)
            }
        };
        let text = text.to_str().ok_or_else(|| SettingError::NotText {
            by: variable.to_owned(),
            value: text.to_string_lossy().into_owned(),
        })?;
        layer.put(setting, variable, value::parse(setting, variable, text.trim(), reading)?)
    }
}

/// Returns the queue and the setting that a variable is for. `rest` is the part after `DACAPO_QUEUE_`.
fn of_a_queue(
    variable: &str,
    rest: &str,
    queues: &[QueueSettings],
) -> Result<(Name, &'static Setting, Reading), SettingError> {
    let by = || variable.to_owned();
    let names = || queues.iter().map(|settings| &settings.queue);
    let tails: Vec<(&Name, &str)> =
        names().filter_map(|queue| Some((queue, variable.strip_prefix(&queue_variable(queue))?))).collect();
    let found: Vec<(&Name, &'static Setting, Reading)> = tails
        .iter()
        .filter_map(|(queue, tail)| names::in_environment(tail).map(|(setting, reading)| (*queue, setting, reading)))
        .collect();
    match (found.as_slice(), tails.as_slice()) {
        ([(queue, setting, reading)], _) => match setting.scope {
            SettingScope::Queue => Ok(((*queue).clone(), setting, *reading)),
            SettingScope::Application => Err(SettingError::NotOfAQueue { by: by(), queue: queue.to_string() }),
        },
        ([_, _, ..], _) => {
            let queues = found.iter().map(|(queue, _, _)| queue.to_string()).collect();
            Err(SettingError::AmbiguousQueue { by: by(), queues })
        }
        ([], [.., (_, tail)]) => Err(unknown(by(), tail)),
        ([], []) => {
            let lower = rest.to_ascii_lowercase();
            let ends = |setting: &&Setting| lower.ends_with(&format!("_{}", setting.name));
            let named = all_settings().find(ends).map_or(rest, |setting| &rest[..rest.len() - setting.name.len() - 1]);
            let nearest = names::nearest(named, names().map(Name::as_str)).map(str::to_owned);
            Err(SettingError::UnknownQueue { by: by(), nearest })
        }
    }
}

/// Returns the effective values, by name, and adds a row for each.
fn effective(
    queue: Option<&Name>,
    table: &'static [Setting],
    voices: &Voices<'_>,
    rows: &mut Vec<EffectiveRow>,
) -> BTreeMap<&'static str, Raw> {
    let mut values = BTreeMap::new();
    for setting in table {
        let said = voices.iter().find_map(|(layer, origin)| Some((layer.0.get(setting.name)?, origin)));
        let (raw, origin) = match said {
            Some(((raw, by), origin)) => (raw.clone(), origin(by)),
            None => (setting.default_raw(), SettingOrigin::Default),
        };
        let value = setting.shown(&raw);
        values.insert(setting.name, raw);
        rows.push(EffectiveRow { queue: queue.cloned(), name: setting.name, value, unit: setting.unit, origin });
    }
    values
}

/// Returns errors for settings of a queue that contradict each other.
fn disorder(queue: &Name, raw: &BTreeMap<&'static str, Raw>, force_exit: u64) -> Vec<SettingError> {
    let of = |name: &'static str| (name, raw[name].number());
    let shutdown = of("shutdown_grace_period").1.saturating_add(of("shutdown_force_timeout").1);
    let pairs = [
        (of("zombie_retry_interval"), of("zombie_retry_max_delay")),
        (of("zombie_grace_period"), of("zombie_give_up_after")),
        (("shutdown_grace_period + shutdown_force_timeout", shutdown), ("force_exit_timeout", force_exit)),
    ];
    let wrong = pairs.into_iter().filter(|((_, lesser), (_, greater))| lesser > greater);
    let error = |((lesser, lesser_value), (greater, greater_value))| SettingError::Disordered {
        queue: queue.to_string(),
        lesser,
        lesser_value: SettingUnit::Time.written(lesser_value),
        greater,
        greater_value: SettingUnit::Time.written(greater_value),
    };
    wrong.map(error).collect()
}
