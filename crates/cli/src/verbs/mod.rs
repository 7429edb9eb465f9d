//! The verbs, each over one connection.

mod batch;
mod change;
mod look;
mod start;
mod store;

use clap::CommandFactory as _;

use crate::arguments::{Arguments, Verb};
use crate::backend::connect;
use crate::demo::demo;
use crate::failure::Result;
use crate::output::Output;

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let Arguments { url, json, verb } = arguments;
    let output = Output::new(json);
    match verb {
        Verb::Completions { shell } => {
            clap_complete::generate(shell, &mut Arguments::command(), "dacapo", &mut std::io::stdout());
            return Ok(());
        }
        Verb::Man => return Ok(clap_mangen::Man::new(Arguments::command()).render(&mut std::io::stdout())?),
        Verb::Demo(asked) => return demo(asked, output).await,
        _ => {}
    }
    let connection = connect(url.as_deref()).await?;
    let client = &**connection.client();
    match verb {
        Verb::List(list) => look::list(client, list, output).await,
        Verb::Count(count) => look::count(client, count, output).await,
        Verb::Show(run) => look::show(client, &run, output).await,
        Verb::History(history) => look::history(client, history, output).await,
        Verb::Stack(run) => look::stack(client, &run, output).await,
        Verb::Stuck => look::stuck(client, output).await,
        Verb::Nodes => look::nodes(client, output).await,
        Verb::Query(message) => look::query(client, message, output).await,
        Verb::Result(run) => look::result(client, &run, output).await,
        Verb::Start(start) => start::start(client, start, output).await,
        Verb::Signal(message) => change::signal(client, message, output).await,
        Verb::Update(update) => change::update(client, update, output).await,
        Verb::Resolve(resolve) => change::resolve(client, resolve, output).await,
        Verb::Cancel(end) => change::cancel(client, end, output).await,
        Verb::Terminate(end) => change::terminate(client, end, output).await,
        Verb::Reset(reset) => change::reset(client, reset, output).await,
        Verb::Release(run) => change::release(client, &run, output).await,
        Verb::Delete(run) => change::delete(client, &run, output).await,
        Verb::Batch(batch) => batch::batch(client, batch, output).await,
        Verb::Backup { file } => store::back_up(client, file, output).await,
        Verb::Verify => store::verify(client, output).await,
        Verb::Export { file, search } => store::export(&connection, file, &search, output).await,
        Verb::Completions { .. } | Verb::Man | Verb::Demo(_) => Ok(()),
    }
}
