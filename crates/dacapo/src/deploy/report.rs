//! The problems of a deploy, by cause.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use dacapo_client::{StuckCause, Unplayable};
use serde::Serialize;

/// The outcome of a replay of open runs with new code.
///
/// ```
/// # use dacapo::prelude::*;
/// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
/// # async fn example() -> dacapo::Result<()> {
/// use dacapo::DeployReport;
///
/// let orders = Dacapo::open("sqlite:orders.db?mode=ro").await?;
/// let found = orders.check_open_runs(checkout, |_| {}).await?;
/// let report = DeployReport::of("orders", found);
/// println!("{report}");
/// std::process::exit(i32::from(!report.is_safe()));
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeployReport {
    /// The name of the check.
    pub name: String,
    /// How many runs were played, if the caller counted them.
    pub played: Option<u64>,
    /// The problems, that of most runs first.
    pub problems: Vec<DeployProblem>,
}

/// Runs of one workflow that cannot be played for the same problem.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeployProblem {
    /// The workflow's type.
    pub workflow: String,
    /// The kind of problem.
    pub cause: StuckCause,
    /// The problem's mark: the recorded command and the new one, each by its place in the code.
    pub subject: String,
    /// How many runs have it.
    pub runs: u64,
    /// The run whose report is the shortest.
    pub example: Unplayable,
}

impl DeployProblem {
    /// Returns the line of code that lets runs go on as they were recorded, and new runs take the new path. None: a patch does not help.
    pub fn patch(&self) -> Option<String> {
        let (recorded, new) = self.subject.strip_prefix("recorded ")?.split_once(", new ")?;
        let at = |place: &str, what: &str| match place {
            "nothing" => "nothing".to_owned(),
            place => format!("{what} at {place}"),
        };
        let (new, recorded) = (at(new, "what is now"), at(recorded, "what was"));
        // What a patch itself left on record is not guarded by another one: the report says what to keep.
        let is_of_patch =
            ["| recorded: patch ", "| new:      patch "].iter().any(|mark| self.example.reason.contains(mark));
        (self.cause == StuckCause::Nondeterminism && !is_of_patch).then(|| {
            format!("if ctx.patched(\"a name for this change\") {{ /* {new} */ }} else {{ /* {recorded} */ }}")
        })
    }
}

impl DeployReport {
    /// Groups the runs that a check found.
    pub fn of(name: impl Into<String>, found: Vec<Unplayable>) -> Self {
        let mut problems: BTreeMap<_, DeployProblem> = BTreeMap::new();
        for run in found {
            let key = (run.workflow.to_string(), run.cause, run.subject.clone());
            let problem = problems.entry(key.clone()).or_insert_with(|| {
                let (workflow, cause, subject) = key;
                DeployProblem { workflow, cause, subject, runs: 0, example: run.clone() }
            });
            problem.runs += 1;
            if run.reason.len() < problem.example.reason.len() {
                problem.example = run;
            }
        }
        let mut problems: Vec<_> = problems.into_values().collect();
        problems.sort_by_key(|problem| std::cmp::Reverse(problem.runs));
        Self { name: name.into(), played: None, problems }
    }

    /// Adds how many runs were played.
    #[must_use]
    pub fn played(mut self, runs: u64) -> Self {
        self.played = Some(runs);
        self
    }

    /// Returns whether every run that was played would go on.
    pub fn is_safe(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Returns the report in the form of JUnit, which CI systems show: a test case for each problem, or one that passed.
    pub fn to_junit(&self) -> String {
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n",
            escaped(&self.name),
            self.problems.len().max(1),
            self.problems.len()
        );
        if self.is_safe() {
            text += "  <testcase classname=\"dacapo\" name=\"open runs\"/>\n";
        }
        for problem in &self.problems {
            let _ = writeln!(
                text,
                "  <testcase classname=\"{}\" name=\"{}: {}\">\n    <failure message=\"{}\">{}</failure>\n  </testcase>",
                escaped(&problem.workflow),
                problem.cause,
                escaped(&problem.subject),
                counted(problem.runs, "run"),
                escaped(&problem.example.to_string())
            );
        }
        text + "</testsuite>\n"
    }
}

/// The report for people.
impl fmt::Display for DeployReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let played = self.played.map(|runs| format!(" of {}", counted(runs, "open run"))).unwrap_or_default();
        let bad: u64 = self.problems.iter().map(|problem| problem.runs).sum();
        if self.is_safe() {
            return writeln!(f, "{}: this code plays every one{played}", self.name);
        }
        writeln!(
            f,
            "{}: {bad}{played} could not go on with this code, for {}",
            self.name,
            counted(self.problems.len() as u64, "problem")
        )?;
        for (place, problem) in self.problems.iter().enumerate() {
            let DeployProblem { workflow, cause, subject, runs, example } = problem;
            writeln!(f, "\n{}. {workflow}, {cause}: {} ({subject})", place + 1, counted(*runs, "run"))?;
            writeln!(f, "   such as {} ({}):", example.workflow_id, example.run_id)?;
            for line in example.reason.lines() {
                writeln!(f, "   {line}")?;
            }
            if let Some(line) = problem.patch() {
                writeln!(f, "   make it safe: {line}")?;
            }
        }
        Ok(())
    }
}

/// A number with what it counts.
fn counted(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' | '\t' => escaped.push(char),
            // XML has no way to write most of these.
            char if char.is_control() => escaped.push(' '),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &'static str, subject: &str, reason: &str) -> Unplayable {
        let run = Unplayable::new(id.into(), format!("{id}-run").into(), "checkout".into(), reason.to_owned());
        run.caused_by(StuckCause::Nondeterminism, subject)
    }

    #[test]
    fn runs_of_the_same_problem_are_one_with_the_shortest_example() {
        let found = vec![run("a", "x", "long reason"), run("b", "y", "other\nline"), run("c", "x", "short")];
        let report = DeployReport::of("orders", found).played(9);
        assert!(!report.is_safe());
        assert_eq!(
            report.to_string(),
            "orders: 3 of 9 open runs could not go on with this code, for 2 problems\n\n1. checkout, nondeterminism: 2 runs (x)\n   \
             such as c (c-run):\n   short\n\n2. checkout, nondeterminism: 1 run (y)\n   such as b (b-run):\n   other\n   line\n"
        );
        let safe = DeployReport::of("orders", Vec::new()).played(9);
        assert_eq!(safe.to_string(), "orders: this code plays every one of 9 open runs\n");
    }

    #[test]
    fn text_that_xml_would_misread_is_escaped() {
        let report = DeployReport::of("a<b", vec![run("a", "\"x\" & y", "expected <T>\u{1b}[0m")]);
        let junit = report.to_junit();
        assert!(junit.contains("<testsuite name=\"a&lt;b\" tests=\"1\" failures=\"1\">"), "{junit}");
        assert!(junit.contains("name=\"nondeterminism: &quot;x&quot; &amp; y\""), "{junit}");
        assert!(junit.contains("expected &lt;T&gt; [0m</failure>"), "{junit}");
        let safe = DeployReport::of("orders", Vec::new()).to_junit();
        assert!(
            safe.contains("tests=\"1\" failures=\"0\"")
                && safe.contains("<testcase classname=\"dacapo\" name=\"open runs\"/>")
        );
    }
}
