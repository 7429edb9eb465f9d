//! Transactions that lock several tasks lock them in one order: none waits for another that waits for it, so none is made again.

use std::thread;

use dacapo_core::{Failure, FailureKind, Seq, Timestamp};
use dacapo_store::{NewTask, RunNo, SharedStore, Status, StoreError, TaskNo, TimerKind, TurnWrite, Write, Writes as _};

use crate::kit::{
    Answer, LONG, TestNode, as_write, attempt, claimed, make_tasks, plain_turn, refused, run_of_each, signal, started,
    submit, submit_on_a_thread, task, two_nodes, until, write,
};
use crate::meters::Meters;
use crate::schema::{Held, Schema};

/// Two nodes that share the runs, and the transactions that they had to make again.
struct Two {
    schema: Schema,
    meters: Meters,
    a: TestNode,
    b: TestNode,
}

impl Two {
    fn new() -> Self {
        let (schema, meters) = (Schema::new(), Meters::default());
        let urls = [schema.named("a", LONG), schema.named("b", LONG)];
        let [a, b] = metrics::with_local_recorder(&meters, || two_nodes([&urls[0], &urls[1]]));
        Self { schema, meters, a, b }
    }

    /// Has a node commit these writes in one transaction. It begins when what this returns is dropped, after another write of the node.
    fn together(&self, (name, node): (&str, &TestNode), writes: Vec<Write>) -> (Held, Vec<Answer>) {
        let run = started(&node.store, if name == "a" { 901 } else { 902 });
        let held = self.schema.hold(&format!("SELECT no FROM runs WHERE no = {} FOR UPDATE", run.0));
        let first = submit_on_a_thread(&node.store, signal(run, 1));
        until("the node is at another write", || self.schema.is_waiting(name));
        let rest = writes.into_iter().map(|write| submit(&node.store, write));
        let answers = rest.chain([first]).collect();
        (held, answers)
    }

    #[track_caller]
    fn made_nothing_again(&self) {
        assert_eq!(self.meters.get("conflicts_total"), 0, "a transaction was made again");
    }
}

fn terminated(run: RunNo) -> Write {
    let failure = Box::new(Failure::new(FailureKind::Terminated, "enough"));
    Write::Close { run, status: Status::Terminated, at: Timestamp::from_millis(9), failure }
}

/// Makes tasks of a run whose order is not that of their numbers by any other column, and has node b work at them.
fn tasks_of(two: &Two, run: RunNo) -> Vec<TaskNo> {
    let of_turn = |turn: u64| make_tasks(&two.a.store, run, turn, vec![task(9 - turn, true)]);
    let tasks: Vec<TaskNo> = (0..3).flat_map(of_turn).collect();
    assert_eq!(claimed(&two.b), tasks);
    tasks
}

/// How node a ends all tasks of a run.
enum Ends {
    Run,
    Seq,
    Number,
}

/// Node b notes attempts of tasks that node a ends. Node a has locked the first of its order, whichever that is, when b begins.
#[test]
fn tasks_that_a_node_ends_are_locked_in_the_order_of_those_whose_attempts_are_noted() {
    for ends in [Ends::Run, Ends::Seq, Ends::Number] {
        let two = Two::new();
        let run = started(&two.a.store, 1);
        let tasks = tasks_of(&two, run);
        // Whatever comes first waits at the gate, and the lowest too: there is a moment between the first two.
        two.schema.add_gate("DELETE ON tasks", &format!("OLD.no = {}", tasks[0].0));
        let shut = two.schema.shut_gate();
        let turn = |turn: TurnWrite| as_write(turn);
        let ends = match ends {
            Ends::Run => terminated(run),
            Ends::Seq => turn(TurnWrite { ended_activities: (7..10).map(Seq).collect(), ..plain_turn(run, 3) }),
            Ends::Number => turn(TurnWrite { ended_tasks: tasks.clone(), ..plain_turn(run, 3) }),
        };
        let ended = submit_on_a_thread(&two.a.store, ends);
        until("the first task is ended", || two.schema.is_waiting("a"));
        let (held, answers) = two.together(("b", &two.b), tasks.iter().map(|task| attempt(*task, 2)).collect());
        drop(held);
        until("the attempts wait for the turn", || two.schema.is_waiting("b"));
        drop(shut);
        ended.get().unwrap();
        let (last, attempts) = answers.split_last().expect("there are some");
        last.get().unwrap();
        attempts.iter().for_each(|answer| assert_eq!(refused(answer.get()), dacapo_store::Refused::NoSuchTask));
        two.made_nothing_again();
    }
}

/// Each of two nodes notes an attempt of one task and ends another, which are the other way round with the other node.
#[test]
fn tasks_that_are_read_and_tasks_that_are_ended_are_locked_together() {
    let two = Two::new();
    let [of_a, of_b] = run_of_each(&[&two.a, &two.b])[..] else { panic!("there are two") };
    // The numbers of b's tasks are all higher than those of a's.
    let ends_a = make_tasks(&two.a.store, of_a, 0, vec![task(1, true)]);
    let ends_b = make_tasks(&two.b.store, of_b, 0, vec![task(1, true)]);
    assert!(ends_a[0] < ends_b[0], "each node draws a block of numbers");
    // Node a works at the task that b's turn ends, and b at that of a's turn.
    two.schema.execute(&format!(
        "UPDATE tasks SET node = CASE no WHEN {} THEN {} ELSE {} END",
        ends_a[0].0,
        two.b.no().0,
        two.a.no().0
    ));
    two.schema.add_gate("INSERT ON turns", "true");
    let shut = two.schema.shut_gate();
    let ends =
        |run, ended_tasks: &[TaskNo]| as_write(TurnWrite { ended_tasks: ended_tasks.to_vec(), ..plain_turn(run, 1) });
    let (held_a, of_a) = two.together(("a", &two.a), vec![attempt(ends_b[0], 2), ends(of_a, &ends_a)]);
    let (held_b, of_b) = two.together(("b", &two.b), vec![attempt(ends_a[0], 2), ends(of_b, &ends_b)]);
    drop((held_a, held_b));
    until("one waits at the gate, and the other there or for that", || {
        two.schema.is_waiting("a") && two.schema.is_waiting("b")
    });
    drop(shut);
    for answer in of_a.iter().chain(&of_b) {
        let answer = answer.get();
        let is_late = matches!(&answer, Err(StoreError::Refused(dacapo_store::Refused::NoSuchTask)));
        assert!(answer.is_ok() || is_late, "{answer:?}");
    }
    two.made_nothing_again();
}

/// A node gives its tasks back while their run ends.
#[test]
fn tasks_that_a_node_gives_back_are_locked_in_the_order_of_those_that_are_ended() {
    let two = Two::new();
    let run = started(&two.a.store, 1);
    let tasks = tasks_of(&two, run);
    // In the table they stand in another order now.
    two.schema.execute(&format!("UPDATE tasks SET details = '' WHERE no = {}", tasks[0].0));
    two.schema.add_gate("UPDATE OF node ON tasks", &format!("NEW.node IS NULL AND OLD.no = {}", tasks[0].0));
    let shut = two.schema.shut_gate();
    let (store, declined) = (two.b.store.clone(), tasks.clone());
    let declining = thread::spawn(move || store.decline(&declined).unwrap());
    until("the first is given back", || two.schema.is_waiting("b"));
    let ended = submit_on_a_thread(&two.a.store, terminated(run));
    until("the end of the run waits", || two.schema.is_waiting("a"));
    drop(shut);
    declining.join().unwrap();
    ended.get().unwrap();
    two.made_nothing_again();
}

/// Runs close while the other node claims their tasks, notes attempts and gives some back.
#[test]
fn runs_that_close_and_nodes_that_claim_their_tasks_never_wait_for_each_other() {
    const RUNS: usize = 60;
    let two = Two::new();
    let offered = || (1..9).map(|seq| NewTask { seq: Seq(9 - seq), ..task(0, true) }).collect::<Vec<_>>();
    thread::scope(|scope| {
        let runs = scope.spawn(|| {
            for number in 0..RUNS {
                let run = started(&two.a.store, number);
                let timers = vec![(Timestamp::from_millis(900_000), TimerKind::Sleep(Seq(20)))];
                let tasks = make_tasks(&two.a.store, run, 0, offered());
                let turn = TurnWrite { ended_tasks: vec![tasks[7], tasks[2]], timers, ..plain_turn(run, 1) };
                let turn = submit_on_a_thread(&two.a.store, as_write(turn));
                write(&two.a.store, terminated(run)).unwrap();
                // It may come too late.
                drop(turn.get());
            }
        });
        let two = &two;
        let works = scope.spawn(move || {
            while !runs.is_finished() {
                let tasks = claimed(&two.b);
                let attempts = tasks.iter().rev().map(|task| submit_on_a_thread(&two.b.store, attempt(*task, 2)));
                let answers: Vec<Answer> = attempts.collect();
                two.b.store.decline(&tasks[..tasks.len() / 2]).unwrap();
                for answer in answers {
                    let answer = answer.get();
                    let is_over = matches!(&answer, Err(StoreError::Refused(dacapo_store::Refused::NoSuchTask)));
                    assert!(answer.is_ok() || is_over, "{answer:?}");
                }
            }
        });
        works.join().expect("node b works on");
    });
    two.made_nothing_again();
    two.b.store.close().unwrap();
}
