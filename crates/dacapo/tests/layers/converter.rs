//! A payload converter instead of JSON.

use std::sync::Arc;

use dacapo::backend::{ClientCall, ClientFuture, ClientReply};
use dacapo::json::{BAD_INPUT, BAD_OUTPUT, Value};
use dacapo::prelude::*;
use dacapo::{Converter, ConverterError, Interceptor, Next, Payload, PayloadConverter, Query, TypedValue, ValueReader};
use dacapo_store::{MemoryStore, Store};
use dacapo_testkit::{Cache, Kit, Sweep};
use serde::{Deserialize, Serialize};

/// MessagePack; reads JSON, too.
struct MessagePack;

impl PayloadConverter for MessagePack {
    fn encode(&self, value: TypedValue<'_>) -> Result<Payload, ConverterError> {
        let data = rmp_serde::to_vec_named(&value)?;
        Ok(Payload::new("binary/msgpack".into(), data.into()))
    }

    fn decode(&self, payload: &Payload, reader: ValueReader<'_>) -> Result<(), ConverterError> {
        match payload.encoding.as_str() {
            "binary/msgpack" => reader.read(&mut rmp_serde::Deserializer::new(&payload.bytes()?[..])),
            _ => reader.read_json(payload),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    lamps: u32,
    note: Option<String>,
}

#[activity]
async fn price(ctx: ActivityCtx, order: Order) -> Result<u64, Failure> {
    ctx.heartbeat(&order)?;
    Ok(u64::from(order.lamps) * 100)
}

#[activity]
fn round_up(cents: u64) -> Result<u64, Failure> {
    Ok(cents.next_multiple_of(1000))
}

const MORE: Signal<Order> = Signal::new("more");
const ADD: Update<u32, u32> = Update::new("add");
const LAMPS: Query<(), u32> = Query::new("lamps");
const TOTAL: dacapo::Key<u64> = dacapo::Key::new("total");

#[workflow]
async fn checkout(ctx: Ctx, order: Order) -> Result<(Order, u64), Failure> {
    let lamps = ctx.cell(order.lamps);
    let seen = lamps.clone();
    ctx.on_query(LAMPS, move |()| Ok(seen.read(|lamps| *lamps)));
    let added = lamps.clone();
    let refuse_none = |more: &u32| if *more == 0 { Err(Failure::application("no lamps")) } else { Ok(()) };
    ctx.on_update(ADD, refuse_none, move |more| {
        let lamps = added.clone();
        async move {
            Ok(lamps.update(|lamps| {
                *lamps += more;
                *lamps
            }))
        }
    });
    let more = ctx.next_signal(MORE).await?;
    lamps.update(|lamps| *lamps += more.lamps);
    let order = Order { lamps: lamps.read(|lamps| *lamps), note: more.note };
    let cents = ctx.call(price, order.clone()).await?;
    let cents = ctx.call_local(round_up, cents).await?;
    let fee = ctx.side_effect("fee", || async { Ok(7_u64) }).await?;
    ctx.keys().set(TOTAL, &(cents + fee));
    Ok((order, ctx.keys().get(TOTAL).unwrap_or_default()))
}

fn kit() -> Kit {
    let mut kit = Kit::new().converter(MessagePack);
    kit.serve((checkout, price, round_up));
    kit
}

fn order(lamps: u32) -> Order {
    Order { lamps, note: Some("bright".to_owned()) }
}

#[test]
fn values_of_all_calls_pass_the_converter_also_on_replay() {
    for cache in [Cache::AtMost(10), Cache::AtMost(0)] {
        let mut kit = kit().cache(cache);
        let run = kit.start(checkout, order(1));
        assert_eq!(kit.update(&run, ADD, 2), Ok(3));
        assert!(kit.update(&run, ADD, 0).is_err(), "the validator reads its input");
        assert_eq!(kit.query(&run, LAMPS, ()), Ok(3));
        kit.signal(&run, MORE, order(4)).unwrap();
        assert_eq!(kit.result(&run), Ok((order(7), 1007)));
        let text = kit.history(&run).to_text();
        assert!(text.contains("binary/msgpack"), "{text}");
        assert!(!text.contains("bright\\\""), "JSON is left in:\n{text}");
    }
}

#[test]
fn crash_at_any_moment_changes_nothing_with_a_converter() {
    let swept = Sweep::new(kit).play(|kit| {
        let run = kit.start(checkout, order(1));
        kit.signal(&run, MORE, order(4)).unwrap();
        assert_eq!(kit.result(&run), Ok((order(5), 1007)));
    });
    assert!(swept.crashes > 5);
}

/// The converter reads what JSON wrote, but writes other bytes, and bytes are compared.
#[test]
fn open_run_is_stuck_when_its_app_is_served_with_another_converter() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let over = |kit: Kit| {
        let store = store.clone();
        let mut kit = kit.over(move || store.clone());
        kit.serve((waits, round_up));
        kit
    };
    let mut json = over(Kit::new());
    json.start(waits, 1);
    drop(json);
    let mut packed = over(Kit::new().converter(MessagePack).runs_may_get_stuck());
    let handle = packed.app().handle(waits, "test-1");
    let error = packed.wait(async { handle.query_raw("any", Value::Null).await }).unwrap_err().to_string();
    assert!(error.contains("nondeterminism") && error.contains("input"), "{error}");
}

#[workflow]
async fn waits(ctx: Ctx, cents: u64) -> Result<(), Failure> {
    ctx.call(round_up, cents).start_to_close(hours(1)).await?;
    ctx.sleep(days(1)).await?;
    Ok(())
}

/// Writes and reads nothing.
struct Broken;

impl PayloadConverter for Broken {
    fn encode(&self, _: TypedValue<'_>) -> Result<Payload, ConverterError> {
        Err("the key is gone".into())
    }

    fn decode(&self, _: &Payload, _: ValueReader<'_>) -> Result<(), ConverterError> {
        Ok(())
    }
}

#[test]
fn converter_that_fails_gives_a_failure_that_names_the_type_and_the_cause() {
    let broken = Converter::new(Broken);
    let failure = broken.encode(&order(1)).unwrap_err();
    assert_eq!(failure.type_name.as_deref(), Some(BAD_OUTPUT));
    assert!(failure.message.ends_with("Order` cannot be encoded: the key is gone"), "{failure}");
    let failure = broken.decode::<Order>(&Payload::json("7")).unwrap_err();
    assert_eq!(failure.type_name.as_deref(), Some(BAD_INPUT));
    assert!(failure.message.ends_with("Order`: the converter read no value; it is `7`"), "{failure}");
    let packed = Converter::new(MessagePack);
    let failure = packed.decode::<Order>(&packed.encode("a text").unwrap()).unwrap_err();
    assert!(failure.message.contains("invalid type: string \"a text\""), "{failure}");
    assert_eq!(
        packed.decode::<Order>(&Converter::json().encode(&order(2)).unwrap()),
        Ok(order(2)),
        "JSON is read, too"
    );
    assert_eq!(packed.decode::<()>(&Payload::default()), Ok(()), "no value at all");
}

/// Returns its header `tenant`.
#[activity]
async fn tenant_of_call(ctx: ActivityCtx) -> Result<Option<String>, Failure> {
    ctx.info().headers.get("tenant").map(|tenant| ctx.decode(tenant)).transpose()
}

/// Returns the header `tenant` of its start.
#[workflow]
async fn tenant_of_start(ctx: Ctx) -> Result<Option<String>, Failure> {
    ctx.info().start.headers.get("tenant").map(|tenant| ctx.decode(tenant)).transpose()
}

#[workflow]
async fn tenants(ctx: Ctx) -> Result<Vec<Option<String>>, Failure> {
    let raw = ctx.encode("raw")?;
    Ok(vec![
        ctx.call(tenant_of_call, ()).header("tenant", "call").await?,
        ctx.call_local(tenant_of_call, ()).header("tenant", "local call").await?,
        ctx.child(tenant_of_start, ()).header("tenant", "child").await?,
        ctx.call(tenant_of_call, ()).header_payload("tenant", raw).await?,
        ctx.info().start.headers.get("tenant").map(|tenant| ctx.decode(tenant)).transpose()?,
    ])
}

/// Text was taken as JSON once, so `ada` made a payload that did not decode.
#[tokio::test(flavor = "multi_thread")]
async fn headers_are_encoded_by_the_converter_of_the_app() {
    for converter in [Converter::json(), Converter::new(MessagePack)] {
        let served = Dacapo::open("memory:").await.unwrap().converter(converter);
        let app = served.serve((tenants, tenant_of_start, tenant_of_call)).await.unwrap();
        let run = app.start(tenants, ()).header("tenant", "start").await.unwrap();
        let expected = ["call", "local call", "child", "raw", "start"].map(|tenant| Some(tenant.to_owned()));
        assert_eq!(run.result().await, Ok(expected.to_vec()));
        app.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_to_a_file_reads_it_with_the_converter_and_interceptors_that_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("x.db").display());
    let app = Dacapo::open(&url).await.unwrap().converter(MessagePack).serve(tenant_of_start).await.unwrap();
    app.start(tenant_of_start, ())
        .id("a")
        .header("tenant", "ada")
        .memo("note", "tall")
        .await
        .unwrap()
        .result()
        .await
        .unwrap();
    let connection = Dacapo::connect(&url).await.unwrap();
    let unread = connection.handle(tenant_of_start, "a").result().await.unwrap_err();
    assert!(matches!(unread, dacapo::Error::Value(_)), "{unread}");
    let connection = connection.with_converter(MessagePack);
    let run = connection.handle(tenant_of_start, "a");
    assert_eq!(run.result().await, Ok(Some("ada".to_owned())));
    let note = run.describe().await.unwrap().memo["note"].clone();
    assert_eq!(connection.decode::<String>(&note), Ok("tall".to_owned()));
    assert_eq!(connection.encode("tall"), Ok(note));
    let refusing = connection.with_interceptor(Refusing);
    assert_eq!(refusing.handle(tenant_of_start, "a").result().await.unwrap_err().to_string(), "not for you");
    assert!(run.result().await.is_ok(), "a handle that was made before does not pass it");
    app.shutdown().await;
}

/// Refuses every call of a client.
struct Refusing;

impl Interceptor for Refusing {
    fn client(&self, _: ClientCall, _: Next<ClientCall, ClientFuture<ClientReply>>) -> ClientFuture<ClientReply> {
        Box::pin(async { Err(dacapo::ClientError::Refused("not for you".into())) })
    }
}
