//! Interceptors around clients, workflows and activities.

use std::sync::{Arc, Mutex};

use dacapo::backend::{ClientCall, ClientFuture, ClientReply};
use dacapo::prelude::*;
use dacapo::{
    ActivityCall, ActivityInfo, ClientError, CodeFuture, Error, InboundKind, InboundMessage, Interceptor, Next,
    OutboundCommand, OutboundKind, Payload, Query, WorkflowCall,
};
use dacapo_testkit::{Cache, Kit};

const TENANT: &str = "tenant";

/// Hands the header `tenant` on from the caller to all that a run starts.
struct Tenant;

impl Interceptor for Tenant {
    fn client(
        &self,
        mut call: ClientCall,
        next: Next<ClientCall, ClientFuture<ClientReply>>,
    ) -> ClientFuture<ClientReply> {
        if let Some(headers) = call.headers_mut() {
            headers.insert(TENANT.into(), "\"ada\"".into());
        }
        next.run(call)
    }

    fn command(&self, command: &mut OutboundCommand<'_>) {
        let tenant = command.run.headers.get(TENANT).cloned().unwrap_or_default();
        command.headers.insert(TENANT.into(), tenant);
    }
}

fn tenant_of(ctx: &ActivityCtx) -> String {
    ctx.info().headers.get(TENANT).map(Payload::to_string).unwrap_or_default()
}

#[activity]
async fn remote(ctx: ActivityCtx) -> Result<String, Failure> {
    Ok(tenant_of(&ctx))
}

#[activity]
fn blocks(ctx: ActivityCtx) -> Result<String, Failure> {
    Ok(tenant_of(&ctx))
}

#[workflow]
async fn child(ctx: Ctx) -> Result<String, Failure> {
    ctx.call(remote, ()).await
}

#[workflow]
async fn family(ctx: Ctx, round: u32) -> Result<Vec<String>, Failure> {
    let mut seen = vec![ctx.call(remote, ()).await?, ctx.call_local(blocks, ()).await?, ctx.child(child, ()).await?];
    if round == 0 {
        return Err(ctx.continue_as_new(family, 1));
    }
    seen.push(ctx.info().start.headers.get(TENANT).map(Payload::to_string).unwrap_or_default());
    Ok(seen)
}

#[test]
fn header_of_a_start_reaches_activities_children_and_the_next_run_also_on_replay() {
    for cache in [Cache::AtMost(10), Cache::AtMost(0)] {
        let mut kit = Kit::new().intercept(Tenant).cache(cache);
        kit.serve((family, child, remote, blocks));
        assert_eq!(kit.run(family, 0), Ok(vec!["\"ada\"".to_owned(); 4]));
    }
}

/// Writes down what passes, under a name.
struct Notes(&'static str, Arc<Mutex<Vec<String>>>);

impl Notes {
    fn note(&self, what: &str) {
        self.1.lock().unwrap().push(format!("{} {what}", self.0));
    }
}

impl Interceptor for Notes {
    fn client(&self, call: ClientCall, next: Next<ClientCall, ClientFuture<ClientReply>>) -> ClientFuture<ClientReply> {
        self.note(call.verb());
        next.run(call)
    }

    fn activity(&self, call: ActivityCall, next: Next<ActivityCall, CodeFuture>) -> CodeFuture {
        let (name, notes, activity) = (self.0, self.1.clone(), call.ctx.info().activity.clone());
        self.note(&format!("begins {activity}"));
        let code = next.run(call);
        Box::pin(async move {
            let result = code.await;
            notes.lock().unwrap().push(format!("{name} ends {activity}"));
            result
        })
    }

    fn heartbeat(&self, info: &ActivityInfo, details: &mut Payload) {
        self.note(&format!("hears {details} of {}", info.activity));
        *details = Payload::json(format!("{details}0"));
    }

    fn workflow(&self, call: WorkflowCall, next: Next<WorkflowCall, CodeFuture>) -> CodeFuture {
        let (name, code) = (self.0, next.run(call));
        Box::pin(async move {
            code.await.map(|result| Payload::json(format!("\"{name}({})\"", result.to_string().replace('"', ""))))
        })
    }

    fn command(&self, command: &mut OutboundCommand<'_>) {
        assert_eq!((command.kind, command.name.as_str()), (OutboundKind::Activity, "reports"));
    }
}

#[activity]
async fn reports(ctx: ActivityCtx) -> Result<u32, Failure> {
    match ctx.details::<u32>()? {
        Some(details) => Ok(details),
        None => {
            ctx.heartbeat(&1)?;
            Err("again".into())
        }
    }
}

#[workflow]
async fn plain(ctx: Ctx) -> Result<String, Failure> {
    Ok(ctx.call(reports, ()).await?.to_string())
}

#[test]
fn first_interceptor_is_the_outermost_around_clients_workflows_and_activities() {
    let notes = Arc::default();
    let mut kit = Kit::new().intercept(Notes("outer", Arc::clone(&notes))).intercept(Notes("inner", notes.clone()));
    kit.serve((plain, reports));
    assert_eq!(kit.run(plain, ()).as_deref(), Ok("outer(inner(100))"));
    let attempt = ["outer begins reports", "inner begins reports"];
    let reported = ["outer hears 1 of reports", "inner hears 10 of reports"];
    let ended = ["inner ends reports", "outer ends reports"];
    let expected: Vec<&str> = [attempt, reported, ended, attempt, ended].concat();
    let seen = notes.lock().unwrap().clone();
    assert_eq!(&seen[..2], ["outer start", "inner start"]);
    let of_activities = |note: &&String| note.contains("reports");
    assert_eq!(seen.iter().filter(of_activities).collect::<Vec<_>>(), expected);
}

const DEPOSIT: Signal<u32> = Signal::new("deposit");
const WITHDRAW: Update<u32, u32> = Update::new("withdraw");
const BALANCE: Query<(), u32> = Query::new("balance");

#[derive(Default)]
struct Account {
    cents: u32,
}

#[workflow]
impl Account {
    #[run]
    async fn run(ctx: Ctx<Self>) -> Result<u32, Failure> {
        ctx.sleep(days(1)).await?;
        let cents = ctx.state().cents;
        Ok(cents)
    }

    #[signal]
    fn deposit(&mut self, cents: u32) {
        self.cents += cents;
    }

    #[update]
    fn withdraw(&mut self, cents: u32) -> Result<u32, Failure> {
        self.cents -= cents;
        Ok(self.cents)
    }

    #[query]
    fn balance(&self) -> u32 {
        self.cents
    }
}

/// Lets messages pass that have a header `role`, and refuses to terminate.
struct Guard;

impl Interceptor for Guard {
    fn client(&self, call: ClientCall, next: Next<ClientCall, ClientFuture<ClientReply>>) -> ClientFuture<ClientReply> {
        match call {
            ClientCall::Terminate(run, _) => {
                let refused = ClientError::Refused(format!("{run} is not yours to terminate"));
                Box::pin(async move { Err(refused) })
            }
            ClientCall::Count(_) => Box::pin(async { Ok(ClientReply::Done) }),
            call => next.run(call),
        }
    }

    fn message(&self, message: &InboundMessage<'_>) -> Result<(), Failure> {
        let is_known = matches!(message.kind, InboundKind::Signal | InboundKind::Update | InboundKind::Query);
        match is_known && message.headers.contains_key("role") {
            true => Ok(()),
            false => Err(Failure::application(format!("{} without a role", message.name))),
        }
    }
}

#[test]
fn message_that_an_interceptor_refuses_is_rejected_answered_or_kept_from_its_handler() {
    let mut kit = Kit::new().intercept(Guard);
    let run = kit.start(Account::run, ());
    let handle = kit.handle(&run);
    kit.wait(handle.signal(DEPOSIT, 100)).unwrap();
    kit.wait(handle.signal(DEPOSIT, 50).header("role", "clerk")).unwrap();
    let rejected = kit.wait(handle.update(WITHDRAW, 10)).unwrap_err();
    assert!(
        matches!(&rejected, Error::Client(ClientError::UpdateRejected(why)) if why.message == "withdraw without a role")
    );
    assert_eq!(kit.wait(handle.update(WITHDRAW, 10).header("role", "clerk")), Ok(40));
    let unanswered = kit.wait(handle.query(BALANCE, ())).unwrap_err();
    assert!(
        matches!(&unanswered, Error::Client(ClientError::QueryFailed(why)) if why.message == "balance without a role")
    );
    let refused = kit.wait(handle.terminate("no")).unwrap_err().to_string();
    assert_eq!(refused, "test-1 is not yours to terminate");
    let mismatch = kit.app().runs();
    let mismatch = kit.wait(mismatch.count(&Filter::all())).unwrap_err().to_string();
    assert_eq!(mismatch, "an interceptor answered `count` with the reply of another call");
    assert_eq!(kit.result(&run), Ok(40));
}

const APPROVE: Signal<String> = Signal::new("approve");

#[workflow]
async fn asks_twice(ctx: Ctx) -> Result<String, Failure> {
    let refused = ctx.next_signal(APPROVE).await.unwrap_err();
    ctx.sleep(secs(1)).await?;
    let taken = ctx.try_signal(APPROVE);
    let is_refused = taken.as_ref().is_err_and(|failure| failure.message == refused.message);
    Ok(format!("{}, again: {is_refused}, then {}", refused.message, ctx.next_signal(APPROVE).await?))
}

#[test]
fn signal_that_a_workflow_awaits_or_takes_is_shown_to_interceptors() {
    let mut kit = Kit::new().intercept(Guard);
    let run = kit.start(asks_twice, ());
    let handle = kit.handle(&run);
    for (name, role) in [("eve", None), ("mallory", None), ("ada", Some("director"))] {
        let signal = handle.signal(APPROVE, name.to_owned());
        kit.wait(if let Some(role) = role { signal.header("role", role) } else { signal }).unwrap();
    }
    assert_eq!(kit.result(&run), Ok("approve without a role, again: true, then ada".into()));
}

/// Lets only the tenant of a run send to it, and adds a layer with the typed ctx.
struct SameTenant;

impl Interceptor for SameTenant {
    fn message(&self, message: &InboundMessage<'_>) -> Result<(), Failure> {
        match message.run.headers.get("tenant") == message.headers.get("tenant") {
            true => Ok(()),
            false => Err(Failure::application("another tenant")),
        }
    }

    fn workflow(&self, call: WorkflowCall, next: Next<WorkflowCall, CodeFuture>) -> CodeFuture {
        let ctx = call.ctx.clone();
        let code = next.run(call);
        Box::pin(async move {
            let tenant: String = ctx.decode(&ctx.info().start.headers["tenant"])?;
            ctx.set_memo("tenant", &tenant);
            code.await
        })
    }
}

#[test]
fn interceptor_sees_the_run_of_a_message_and_the_ctx_of_the_app() {
    let mut kit = Kit::new().intercept(SameTenant);
    let run = kit.start_with(Account::run, (), |start| start.header("tenant", "ada"));
    let handle = kit.handle(&run);
    let refused = kit.wait(handle.update(WITHDRAW, 10).header("tenant", "eve")).unwrap_err();
    assert!(refused.to_string().contains("another tenant"), "{refused}");
    kit.wait(handle.signal(DEPOSIT, 50).header("tenant", "ada")).unwrap();
    assert_eq!(kit.wait(handle.update(WITHDRAW, 10).header("tenant", "ada")), Ok(40));
    let memo = kit.wait(handle.describe()).unwrap().memo;
    assert_eq!(kit.app().decode::<String>(&memo["tenant"]), Ok("ada".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn interceptors_of_a_served_app_wrap_async_and_blocking_activities() {
    let app = Dacapo::open("memory:").await.unwrap().intercept(Tenant).serve((family, child, remote, blocks)).await;
    let app = app.unwrap();
    let run = app.start(family, 0).await.unwrap();
    assert_eq!(run.result().await, Ok(vec!["\"ada\"".to_owned(); 4]));
    app.shutdown().await;
}
