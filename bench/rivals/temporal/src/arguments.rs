//! The words of the command line: `--name value`, in any order.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

/// The options of a worker or of the caller.
pub struct Arguments {
    given: BTreeMap<String, String>,
    /// A little of the workload.
    pub quick: bool,
}

impl Arguments {
    pub fn parse(mut words: &[&str]) -> Result<Self> {
        let mut arguments = Self { given: BTreeMap::new(), quick: false };
        loop {
            words = match words {
                [] => return Ok(arguments),
                ["--quick", rest @ ..] => {
                    arguments.quick = true;
                    rest
                }
                [name, value, rest @ ..] if name.starts_with("--") => {
                    arguments.given.insert((*name).to_owned(), (*value).to_owned());
                    rest
                }
                [other, ..] => bail!("unknown word `{other}`: expected options and their values"),
            }
        }
    }

    /// Returns the value of an option, by its name with the dashes.
    pub fn get(&self, name: &str) -> Result<&str> {
        self.given.get(name).map(String::as_str).with_context(|| format!("the option {name} is missing"))
    }

    /// Returns the value of an option that is the id of a process.
    pub fn pid(&self, name: &str) -> Result<u32> {
        let value = self.get(name)?;
        value.parse().with_context(|| format!("invalid process id {value:?} after {name}: expected a number"))
    }
}
