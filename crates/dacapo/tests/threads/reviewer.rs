use dacapo::Dacapo;
use dacapo::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const GO: Signal<u64> = Signal::new("go");
const HOW: Query<(), u64> = Query::new("how");

static BAD: AtomicBool = AtomicBool::new(true);
static PLAYS: AtomicU64 = AtomicU64::new(0);

#[workflow]
async fn fragile(ctx: Ctx, _n: u64) -> Result<u64, Failure> {
    PLAYS.fetch_add(1, Ordering::SeqCst);
    ctx.on_query(HOW, |()| Ok(1));
    // slow code of the user's: half a second to replay
    std::thread::sleep(Duration::from_millis(700));
    let n = ctx.signal(GO).await?;
    if BAD.load(Ordering::SeqCst) {
        panic!("bad deploy")
    }
    Ok(n)
}

// R2
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r2_a_question_makes_a_parked_run_forget_its_retry() {
    let app = Dacapo::open("memory:").await.unwrap().double_play(false).serve((fragile,)).await.unwrap();
    let run = app.start(fragile, 1).id("f").await.unwrap();
    run.signal(GO, 5).await.unwrap();
    // it parks for one second
    while run.describe().await.unwrap().stuck.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    BAD.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(600)).await;
    eprintln!("query: {:?}", run.query(HOW, ()).await);
    let plays = PLAYS.load(Ordering::SeqCst);
    let ended = tokio::time::timeout(Duration::from_secs(20), run.result()).await;
    eprintln!("R2 {ended:?}, plays since the query: {}", PLAYS.load(Ordering::SeqCst) - plays);
    assert!(ended.is_ok(), "it is healed and never tried again: {:?}", run.describe().await.unwrap().stuck);
}

#[workflow]
async fn nest(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    if n == 0 { ctx.signal(GO).await } else { ctx.child(nest, n - 1).id(format!("nest-{}", n - 1)).await }
}

// R3
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r3_a_deep_tree_of_children_is_terminated() {
    let deep: u64 = std::env::var("DEEP").map_or(3000, |d| d.parse().unwrap());
    let app = Dacapo::open("memory:").await.unwrap().double_play(false).serve((nest,)).await.unwrap();
    let run = app.start(nest, deep).id("root").await.unwrap();
    let leaf = app.handle(nest, "nest-0");
    while leaf.describe().await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    eprintln!("R3 tree stands");
    run.terminate("enough").await.unwrap();
    eprintln!("R3 terminated");
}

#[workflow]
async fn collect(ctx: Ctx, _n: u64) -> Result<Vec<u64>, Failure> {
    let mut seen = Vec::new();
    loop {
        let n = ctx.signal(GO).await?;
        if n == 0 {
            return Ok(seen);
        }
        seen.push(n);
    }
}

// R6a
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r6_signals_that_come_while_a_run_is_reset() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("r.db").display());
    let app = Dacapo::open(&url).await.unwrap().double_play(false).serve((collect,)).await.unwrap();
    app.start(collect, 1).id("c").await.unwrap();
    let run = app.handle(collect, "c");
    let mut senders = tokio::task::JoinSet::new();
    let done = std::sync::Arc::new(AtomicBool::new(false));
    for s in 0..8u64 {
        let (run, done) = (run.clone(), done.clone());
        senders.spawn(async move {
            let mut acked = Vec::new();
            let mut n = 0;
            while !done.load(Ordering::SeqCst) {
                n += 1;
                let value = s * 1_000_000 + n;
                if run.signal(GO, value).await.is_ok() {
                    acked.push(value);
                }
            }
            acked
        });
    }
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        eprintln!("reset: {:?}", run.reset(1, "again").await.map(|_| ()));
    }
    done.store(true, Ordering::SeqCst);
    let acked: Vec<u64> = senders.join_all().await.into_iter().flatten().collect();
    run.signal(GO, 0).await.unwrap();
    let seen = run.result().await.unwrap();
    let set: std::collections::BTreeSet<u64> = seen.iter().copied().collect();
    let lost = acked.iter().filter(|n| !set.contains(n)).count();
    eprintln!("R6 acknowledged {}, seen {} ({} distinct), lost {lost}", acked.len(), seen.len(), set.len());
    assert_eq!(lost, 0);
}

#[workflow]
async fn once(ctx: Ctx, _n: u64) -> Result<u64, Failure> {
    ctx.signal(GO).await?;
    ctx.sleep(millis(1)).await?;
    Ok(1)
}

// R12
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r12_very_many_signals_to_a_run_that_closes() {
    let many: u64 = std::env::var("MANY").map_or(20_000, |d| d.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("r.db").display());
    let app = Dacapo::open(&url).await.unwrap().double_play(false).serve((once,)).await.unwrap();
    let run = app
        .start(once, 1)
        .id("o")
        .delay(Duration::from_secs(std::env::var("DELAY").map_or(10, |d| d.parse().unwrap())))
        .await
        .unwrap();
    let t = Instant::now();
    let mut senders = tokio::task::JoinSet::new();
    for s in 0..64u64 {
        let run = run.clone();
        senders.spawn(async move {
            for n in 0..many / 64 {
                run.signal(GO, s + n).await.unwrap();
            }
        });
    }
    senders.join_all().await;
    eprintln!("R12 sent {many} in {:?}", t.elapsed());
    let t = Instant::now();
    run.result().await.unwrap();
    eprintln!("R12 result after {:?}", t.elapsed());
}

const BUMP: Update<u64, u64> = Update::new("bump");
#[workflow]
async fn chain(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    ctx.on_update(BUMP, |_| Ok(()), move |by| async move { Ok(by) });
    if n > 0 {
        ctx.sleep(millis(0)).await?;
        return Err(ctx.continue_as_new(chain, n - 1));
    }
    ctx.signal(GO).await
}

// R13
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r13_updates_of_a_long_chain() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("r.db").display());
    for long in [0u64, 1000, 4000] {
        let app = Dacapo::open(&url).await.unwrap().double_play(false).serve((chain,)).await.unwrap();
        app.start(chain, long).id(format!("chain-{long}")).await.unwrap();
        let run = app.handle(chain, format!("chain-{long}"));
        let filter = dacapo::Filter::all().workflow_id(format!("chain-{long}"));
        while app.runs().count(&filter).await.unwrap() <= long {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        run.update(BUMP, 1).await.unwrap();
        let t = Instant::now();
        for _ in 0..10 {
            run.update(BUMP, 1).await.unwrap();
        }
        eprintln!("R13 chain of {long}: one update takes {:?}", t.elapsed() / 10);
        app.shutdown().await;
    }
}

#[activity]
async fn slow(_n: u64) -> Result<u64, Failure> {
    tokio::time::sleep(Duration::from_secs(3600)).await;
    Ok(1)
}
#[workflow]
async fn fan(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let calls: Vec<_> = (0..n).map(|i| ctx.call(slow, i)).collect();
    for call in calls {
        call.await?;
    }
    Ok(1)
}
// R14
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r14_terminating_beside_many_pending_activities() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("r.db").display());
    let app = Dacapo::open(&url).await.unwrap().double_play(false).serve((fan, slow, collect)).await.unwrap();
    for round in 0..3 {
        for n in 0..50 {
            app.start(collect, 1).id(format!("c{round}-{n}")).await.unwrap();
        }
        let t = Instant::now();
        for n in 0..50 {
            app.handle(collect, format!("c{round}-{n}")).terminate("x").await.unwrap();
        }
        eprintln!("R14 {} pending activities: a terminate takes {:?}", round * 50_000, t.elapsed() / 50);
        for n in 0..10 {
            app.start(fan, 5_000).id(format!("fan{round}-{n}")).await.unwrap();
        }
    }
}

struct Bomb;
impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("a destructor of the user's")
        }
    }
}
#[workflow]
async fn bomb(ctx: Ctx, _n: u64) -> Result<u64, Failure> {
    let bomb = Bomb;
    let n = ctx.signal(GO).await?;
    std::mem::forget(bomb);
    Ok(n)
}
// R17
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r17_destructors_that_panic() {
    let app = Dacapo::open("memory:")
        .await
        .unwrap()
        .double_play(false)
        .cache(0)
        .turn_threads(2)
        .serve((bomb, collect))
        .await
        .unwrap();
    for n in 0..5 {
        let r =
            tokio::time::timeout(Duration::from_secs(5), app.start(bomb, 1).id(format!("b{n}")).into_future()).await;
        eprintln!("bomb {n}: {}", r.is_ok());
    }
    let ok = tokio::time::timeout(Duration::from_secs(5), app.start(collect, 1).id("c").into_future()).await;
    assert!(ok.is_ok(), "the engine hangs: its threads are dead");
}

// R9 on threads: a workflow's own retry
#[activity]
async fn fails(_n: u64) -> Result<u64, Failure> {
    Err(Failure::application("no"))
}
#[workflow]
async fn failing(_ctx: Ctx, _n: u64) -> Result<u64, Failure> {
    Err(Failure::application("no"))
}
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r9_a_retry_policy_kills_turn_threads() {
    let app = Dacapo::open("memory:")
        .await
        .unwrap()
        .double_play(false)
        .turn_threads(2)
        .serve((failing, collect))
        .await
        .unwrap();
    for n in 0..2 {
        let retry = Retry::exponential().initial(Duration::MAX).longest(Duration::MAX);
        let r = tokio::time::timeout(
            Duration::from_secs(3),
            app.start(failing, 1).id(format!("b{n}")).retry(retry).into_future(),
        )
        .await;
        eprintln!("R9 start {n}: {:?}", r.map(|r| r.map(|_| ())));
    }
    let ok = tokio::time::timeout(Duration::from_secs(5), app.start(collect, 1).id("c").into_future()).await;
    assert!(ok.is_ok(), "the engine hangs: its threads are dead");
}

const PUT: Update<u64, u64> = Update::new("put");
#[workflow]
async fn entity(ctx: Ctx, before: (u64, Vec<u64>)) -> Result<Vec<u64>, Failure> {
    let (round, seen) = before;
    let list = ctx.cell(seen);
    let l = list.clone();
    ctx.on_update(
        PUT,
        |_| Ok(()),
        move |n| {
            let l = l.clone();
            async move {
                l.update(|l| l.push(n));
                Ok(n)
            }
        },
    );
    for i in 0.. {
        let n = ctx.signal(GO).await?;
        if n == 0 {
            return Ok(list.read(|l| l.clone()));
        }
        list.update(|l| l.push(n));
        if i == 6 {
            break;
        }
    }
    Err(ctx.continue_as_new(entity, (round + 1, list.read(|l| l.clone()))))
}

// R20
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r20_storm_of_signals_and_updates_over_continue_as_new() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("r.db").display());
    let app = Dacapo::open(&url).await.unwrap().double_play(false).cache(3).serve((entity,)).await.unwrap();
    const E: u64 = 12;
    for e in 0..E {
        app.start(entity, (0, vec![])).id(format!("e{e}")).await.unwrap();
    }
    let mut senders = tokio::task::JoinSet::new();
    for e in 0..E {
        for s in 1..=6u64 {
            let run = app.handle(entity, format!("e{e}"));
            senders.spawn(async move {
                let mut acked = Vec::new();
                let mut bad = Vec::new();
                for n in 0..60u64 {
                    let v = s * 10_000 + n + 1;
                    let r = if s % 3 == 0 { run.update(PUT, v).await.map(drop) } else { run.signal(GO, v).await };
                    match r {
                        Ok(()) => acked.push(v),
                        Err(e) => bad.push((v, e.to_string())),
                    }
                }
                (e, acked, bad)
            });
        }
    }
    let all = tokio::time::timeout(Duration::from_secs(50), senders.join_all()).await.expect("senders hang");
    let mut errors = std::collections::BTreeMap::<String, u32>::new();
    let (mut lost, mut twice, mut ghosts) = (0, 0, 0);
    for e in 0..E {
        let run = app.handle(entity, format!("e{e}"));
        run.signal(GO, 0).await.unwrap();
        let seen = tokio::time::timeout(Duration::from_secs(20), run.result()).await.expect("hangs").unwrap();
        let mut count = std::collections::BTreeMap::new();
        for s in &seen {
            *count.entry(*s).or_insert(0) += 1;
        }
        for (_, acked, bad) in all.iter().filter(|a| a.0 == e) {
            for v in acked {
                match count.get(v) {
                    None => {
                        lost += 1;
                        *errors
                            .entry(format!("lost of {}", if (v / 10_000) % 3 == 0 { "updates" } else { "signals" }))
                            .or_default() += 1;
                    }
                    Some(1) => {}
                    _ => twice += 1,
                }
            }
            for (v, why) in bad {
                *errors.entry(why.clone()).or_default() += 1;
                if count.contains_key(v) {
                    ghosts += 1
                }
            }
        }
    }
    eprintln!("R20 lost {lost}, twice {twice}, refused but taken {ghosts}, errors {errors:?}");
    assert_eq!((lost, twice), (0, 0));
}

// R22
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r22_callers_hang_when_the_engine_stops() {
    let mut hung = 0;
    for round in 0..150 {
        let app = Dacapo::open("memory:").await.unwrap().double_play(false).serve((collect, fragile2)).await.unwrap();
        let run = app.start(fragile2, 1).id("c").await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for k in 0..12 {
            let run = run.clone();
            tasks.spawn(async move {
                loop {
                    let end = match k % 3 {
                        0 => run.query(HOW, ()).await.is_err(),
                        1 => {
                            let r = tokio::time::timeout(Duration::from_micros(300), run.result()).await;
                            match r {
                                Ok(r) => r.is_err(),
                                Err(_) => false,
                            }
                        }
                        _ => run.signal(GO, 1).await.is_err(),
                    };
                    if end {
                        return k;
                    }
                }
            });
        }
        tokio::time::sleep(Duration::from_millis(3 + round % 5)).await;
        app.shutdown().await;
        // those that wait for a result without a timeout
        let mut ended = Vec::new();
        while let Ok(Some(k)) = tokio::time::timeout(Duration::from_secs(3), tasks.join_next()).await {
            ended.push(k.unwrap());
        }
        if ended.len() < 12 {
            hung += 1;
            eprintln!(
                "hang: {:?} (mod 3: 0 query, 1 result, 2 signal)",
                (0..12).filter(|k| !ended.contains(k)).collect::<Vec<_>>()
            );
        }
        if hung > 2 {
            break;
        }
    }
    eprintln!("R22 rounds with a caller that hangs: {hung}");
    assert_eq!(hung, 0);
}
#[workflow]
async fn fragile2(ctx: Ctx, _n: u64) -> Result<u64, Failure> {
    ctx.on_query(HOW, |()| Ok(1));
    loop {
        if ctx.signal(GO).await? == 0 {
            return Ok(1);
        }
    }
}

#[activity]
async fn quick(n: u64) -> Result<u64, Failure> {
    Ok(n)
}
#[workflow]
async fn wide(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let calls: Vec<_> = (0..n).map(|i| ctx.call(quick, i)).collect();
    let mut sum = 0;
    for call in calls {
        sum += call.await?;
    }
    Ok(sum)
}
// R23
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r23_ten_thousand_wide() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("r.db").display());
    let app = Dacapo::open(&url).await.unwrap().double_play(false).serve((wide, quick)).await.unwrap();
    let t = Instant::now();
    let run = app.start(wide, 10_000).id("w").await.unwrap();
    assert_eq!(tokio::time::timeout(Duration::from_secs(60), run.result()).await.expect("slow").unwrap(), 49_995_000);
    eprintln!("R23 10,000 wide: {:?}, turns {}", t.elapsed(), run.describe().await.unwrap().turns);
}
// R24
#[workflow]
async fn long(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    let mut sum = 0;
    for i in 0..n {
        sum += ctx.call(quick, i).await?;
    }
    Ok(sum)
}
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r24_many_turns() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("r.db").display());
    for n in [2000u64, 8000] {
        let app = Dacapo::open(&url).await.unwrap().double_play(false).serve((long, quick)).await.unwrap();
        let t = Instant::now();
        let run = app.start(long, n).id(format!("l{n}")).await.unwrap();
        let r = tokio::time::timeout(Duration::from_secs(60), run.result()).await.expect("slow").unwrap();
        assert_eq!(r, n * (n - 1) / 2);
        eprintln!("R24 {n} turns: {:?} each", t.elapsed() / n as u32);
        app.shutdown().await;
    }
}
// R25 dropped without shutdown
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r25_dropped_without_a_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("r.db").display());
    for _ in 0..20 {
        let app = Dacapo::open(&url).await.unwrap().double_play(false).serve((collect, quick)).await.unwrap();
        let _ = app.start(collect, 1).id(format!("{:?}", Instant::now())).await.unwrap();
        drop(app);
    }
}

#[workflow]
async fn dicey(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    ctx.run("roll", move || {
        // the closure's own part, before its future
        if n > 0 {
            panic!("in the closure")
        }
        async move { Ok(n) }
    })
    .await
}
// R26
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r26_a_closure_of_run_that_panics() {
    let app = Dacapo::open("memory:")
        .await
        .unwrap()
        .double_play(false)
        .turn_threads(2)
        .serve((dicey, collect))
        .await
        .unwrap();
    for n in 1..4 {
        let r =
            tokio::time::timeout(Duration::from_secs(2), app.start(dicey, n).id(format!("d{n}")).into_future()).await;
        eprintln!("R26 start {n}: {:?}", r.map(|r| r.map(|_| ())));
    }
    let ok = tokio::time::timeout(Duration::from_secs(3), app.start(collect, 1).id("c").into_future()).await;
    eprintln!("R26 another start: {:?}", ok.as_ref().map(|r| r.as_ref().map(|_| ())));
    assert!(ok.is_ok(), "the engine hangs: its threads are dead");
}

// R29
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r29_urls_and_symlinks() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().display().to_string();
    for url in [
        "postgres://x/y",
        "temporal://h:1/ns",
        "orders.db",
        "sqlite:",
        "sqlite:/no/such/dir/x.db",
        "sqlite:/tmp",
        "sqlite:a.db?mode=rw",
        "memory:x",
        "",
    ] {
        match Dacapo::open(url).await {
            Ok(_) => eprintln!("{url:?}: ok"),
            Err(e) => eprintln!("{url:?}: {e}"),
        }
    }
    std::fs::write(format!("{dir}/trunc.db"), b"SQLite format 3\0short").unwrap();
    eprintln!("truncated: {:?}", Dacapo::open(&format!("sqlite:{dir}/trunc.db")).await.err().map(|e| e.to_string()));
    let a = Dacapo::open(&format!("sqlite:{dir}/real.db")).await.unwrap().serve((collect,)).await.unwrap();
    a.start(collect, 1).id("x").await.unwrap();
    std::os::unix::fs::symlink(format!("{dir}/real.db"), format!("{dir}/link.db")).unwrap();
    let b = Dacapo::open(&format!("sqlite:{dir}/link.db")).await;
    eprintln!("R29 a second server over a symlink: {:?}", b.as_ref().err().map(|e| e.to_string()));
    if let Ok(b) = b {
        let b = b.serve((collect,)).await.unwrap();
        a.handle(collect, "x").signal(GO, 1).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        b.handle(collect, "x").signal(GO, 2).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        a.handle(collect, "x").signal(GO, 3).await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        eprintln!("R29 stuck: {:?}", a.handle(collect, "x").describe().await.unwrap().stuck.map(|s| s.reason));
    }
}

// R30: rows of closed runs whose result was asked for
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r30_result_of_closed_runs_leaks() {
    fn rss() -> u64 {
        let s = std::fs::read_to_string("/proc/self/statm").unwrap();
        s.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4
    }
    let app = Dacapo::open("memory:").await.unwrap().double_play(false).cache(10).serve((dicey,)).await.unwrap();
    for n in 0..20_000u64 {
        app.start(dicey, 0).id(format!("d{n}")).await.unwrap().result().await.unwrap();
    }
    let before = rss();
    for n in 0..20_000u64 {
        app.handle(dicey, format!("d{n}")).result().await.unwrap();
    }
    eprintln!("R30 {} KiB more after 20,000 results of closed runs", rss() - before);
}
