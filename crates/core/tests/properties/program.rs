//! Generated workflow programs: a small tree of operations and combinators, and how one is drawn from a seed.

use std::sync::Arc;

use dacapo_core::Rng;

/// A sequence of steps.
pub(crate) type Block = Arc<Vec<Step>>;

/// One operation, and whether its failure ends the block it stands in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) op: Op,
    pub(crate) strict: bool,
}

/// What becomes of the future of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum How {
    Await,
    Detach,
    Drop,
    /// It is kept, and awaited by the unit that plays [`Op::AwaitStored`].
    Store,
}

/// The operations that take a seq.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Seqd {
    Activity,
    Tuned,
    Local,
    Timer,
    Child,
    ChildStart,
    SignalExternal,
    CancelExternal,
    Promise,
    SideEffect,
    Nexus,
}

/// When a cancellation scope is cancelled.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kill {
    Never,
    First,
    /// After this was played beside it.
    After(Block),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Phase {
    pub(crate) until: u64,
    pub(crate) timeout: Option<u64>,
    pub(crate) serial: bool,
    pub(crate) handler: Option<Block>,
}

/// Everything a workflow can do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    Start {
        what: Seqd,
        name: usize,
        input: u64,
        how: How,
    },
    AwaitStored {
        newest: bool,
    },
    /// Polls what was kept once, and keeps it on.
    Glance,
    Signal(usize),
    TrySignal(usize),
    SetState(usize, u64),
    GetState(usize),
    ClearState(usize),
    Publish(u64),
    Add(u64),
    Attribute(usize, Option<u64>),
    Memo(usize, Option<u64>),
    Patched(usize, Block),
    Deprecated(usize),
    Now,
    Random,
    Uuid,
    Info,
    Choose(Vec<Block>),
    Yield,
    WaitUntil(u64),
    Parallel(Vec<Block>),
    Join(Vec<Block>),
    TryJoin(Vec<Block>),
    ForeignJoin(Vec<Block>),
    Race(Block, Block),
    SelectAll(Vec<Block>),
    ForeignSelect(Block, Block),
    Timeout(u64, Block),
    Launch(Block, How),
    Scope(Block, Vec<Block>),
    Cancellable(Block, Kill),
    Shield(Block),
    Phase(Phase),
    OnSignal(usize, Block),
    OnUpdate(usize, Block),
    OnQuery(usize),
    Fail,
    ContinueAsNew(u64),
}

/// A workflow to play.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    pub(crate) body: Block,
    pub(crate) wait_for_handlers: bool,
}

/// Names that several operations share, so that mistaking one for another is possible.
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];
pub(crate) const TUNED: [&str; 3] = ["x", "y", "z"];
/// Signals that are waited for, and those that run-bound handlers take. A name is never both: that is a violation.
pub(crate) const WAITED: [&str; 2] = ["s0", "s1"];
pub(crate) const HANDLED: [&str; 2] = ["h0", "h1"];
pub(crate) const UPDATES: [&str; 2] = ["u0", "u1"];
pub(crate) const PHASE_SIGNAL: &str = "phase signal";
pub(crate) const PHASE_UPDATE: &str = "phase update";
pub(crate) const QUERIES: [&str; 2] = ["q0", "q1"];

impl Program {
    /// The program of this seed.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let mut draw = Draw { rng, budget: 34 };
        let wait_for_handlers = draw.one_in(3);
        let mut body = draw.prologue();
        let longest = if draw.one_in(4) { 1 } else { 6 };
        body.extend(draw.steps(3, longest, true));
        if draw.one_in(6) {
            body.push(loose(Op::ContinueAsNew(1)));
        }
        Self { body: Arc::new(body), wait_for_handlers }
    }

    /// All steps, those of inner blocks included.
    pub(crate) fn size(&self) -> usize {
        fn steps(block: &Block) -> usize {
            block.iter().map(|step| 1 + step.op.blocks().into_iter().map(steps).sum::<usize>()).sum()
        }
        steps(&self.body)
    }
}

impl Op {
    /// The blocks inside.
    pub(crate) fn blocks(&self) -> Vec<&Block> {
        match self {
            Self::Patched(_, block)
            | Self::Timeout(_, block)
            | Self::Launch(block, _)
            | Self::Shield(block)
            | Self::OnSignal(_, block)
            | Self::OnUpdate(_, block) => vec![block],
            Self::Choose(blocks)
            | Self::Parallel(blocks)
            | Self::Join(blocks)
            | Self::TryJoin(blocks)
            | Self::ForeignJoin(blocks)
            | Self::SelectAll(blocks) => blocks.iter().collect(),
            Self::Race(a, b) | Self::ForeignSelect(a, b) => vec![a, b],
            Self::Scope(body, units) => std::iter::once(body).chain(units).collect(),
            Self::Cancellable(body, Kill::After(killer)) => vec![body, killer],
            Self::Cancellable(body, _) => vec![body],
            Self::Phase(phase) => phase.handler.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The blocks inside, to be changed.
    pub(crate) fn blocks_mut(&mut self) -> Vec<&mut Block> {
        match self {
            Self::Patched(_, block)
            | Self::Timeout(_, block)
            | Self::Launch(block, _)
            | Self::Shield(block)
            | Self::OnSignal(_, block)
            | Self::OnUpdate(_, block) => vec![block],
            Self::Choose(blocks)
            | Self::Parallel(blocks)
            | Self::Join(blocks)
            | Self::TryJoin(blocks)
            | Self::ForeignJoin(blocks)
            | Self::SelectAll(blocks) => blocks.iter_mut().collect(),
            Self::Race(a, b) | Self::ForeignSelect(a, b) => vec![a, b],
            Self::Scope(body, units) => std::iter::once(body).chain(units).collect(),
            Self::Cancellable(body, Kill::After(killer)) => vec![body, killer],
            Self::Cancellable(body, _) => vec![body],
            Self::Phase(phase) => phase.handler.iter_mut().collect(),
            _ => Vec::new(),
        }
    }
}

/// A program being drawn.
struct Draw<'a> {
    rng: &'a mut Rng,
    /// How many steps it may still have.
    budget: usize,
}

impl Draw<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    fn place(&mut self, len: usize) -> usize {
        self.rng.below(len as u64) as usize
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.rng.below(n) == 0
    }

    /// Handlers are mostly registered first, as real programs do.
    fn prologue(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for place in 0..2 {
            if self.one_in(3) {
                steps.push(loose(Op::OnSignal(place, self.waiting_block())));
            }
            if self.one_in(3) {
                steps.push(loose(Op::OnUpdate(place, self.waiting_block())));
            }
            if self.one_in(4) {
                steps.push(loose(Op::OnQuery(place)));
            }
        }
        steps
    }

    fn block(&mut self, depth: u32, longest: u64) -> Block {
        Arc::new(self.steps(depth, longest, false))
    }

    /// A block that often waits for a message before anything else, and so outlives others.
    fn waiting_block(&mut self) -> Block {
        let wait = self.one_in(2).then(|| loose(Op::Signal(self.place(2))));
        Arc::new(wait.into_iter().chain(self.steps(1, 3, false)).collect())
    }

    fn blocks(&mut self, depth: u32) -> Vec<Block> {
        (0..1 + self.below(3)).map(|_| self.block(depth, 3)).collect()
    }

    fn steps(&mut self, depth: u32, longest: u64, root: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        let least = if root { longest } else { 0 };
        for _ in 0..least + self.below(longest + 1) {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            let op = if depth > 0 && self.below(5) < 2 { self.inner(depth - 1, root) } else { self.leaf() };
            steps.push(Step { op, strict: self.one_in(5) });
        }
        steps
    }

    /// An operation without blocks.
    pub(crate) fn leaf(&mut self) -> Op {
        let (place, value) = (self.place(2), self.below(4));
        match self.below(37) {
            0..=12 => self.start(),
            13 | 14 => Op::AwaitStored { newest: self.one_in(2) },
            15 | 16 => Op::Signal(place),
            17 => Op::TrySignal(place),
            18 | 19 => Op::SetState(place, value),
            20 => Op::GetState(place),
            21 => Op::ClearState(place),
            22 => Op::Publish(value),
            23 | 24 => Op::Add(1),
            25 => Op::Attribute(place, Some(value).filter(|value| *value > 0)),
            26 => Op::Memo(place, Some(value).filter(|value| *value > 0)),
            27 => Op::Deprecated(place),
            28 => Op::Now,
            29 => Op::Random,
            30 => Op::Uuid,
            31 => Op::Info,
            32 => Op::Yield,
            33 | 34 => Op::WaitUntil(1 + self.below(3)),
            35 => Op::Glance,
            _ if self.one_in(8) => Op::ContinueAsNew(value),
            _ => Op::Fail,
        }
    }

    fn start(&mut self) -> Op {
        let what = match self.below(13) {
            0 | 1 => Seqd::Activity,
            2 => Seqd::Tuned,
            3 => Seqd::Local,
            4 => Seqd::Timer,
            5 => Seqd::Child,
            6 => Seqd::ChildStart,
            7 => Seqd::SignalExternal,
            8 => Seqd::CancelExternal,
            9 => Seqd::Promise,
            10 => Seqd::SideEffect,
            11 => Seqd::Nexus,
            _ => Seqd::Timer,
        };
        let how = match self.below(8) {
            0..=3 => How::Await,
            4 => How::Detach,
            5 => How::Drop,
            _ => How::Store,
        };
        Op::Start { what, name: self.place(NAMES.len()), input: self.below(3), how }
    }

    /// An operation with blocks.
    fn inner(&mut self, depth: u32, root: bool) -> Op {
        let value = 1 + self.below(3);
        match self.below(25) {
            0..=2 => Op::Parallel(self.blocks(depth)),
            3 => Op::Join(self.blocks(depth)),
            4 => Op::TryJoin(self.blocks(depth)),
            5 => Op::ForeignJoin(self.blocks(depth)),
            6 | 7 => Op::Race(self.block(depth, 3), self.block(depth, 3)),
            8 => Op::SelectAll(self.blocks(depth)),
            9 => Op::ForeignSelect(self.block(depth, 3), self.block(depth, 3)),
            10 | 11 => Op::Timeout(value, self.block(depth, 3)),
            12 | 13 => {
                let how = [How::Await, How::Drop, How::Store][self.place(3)];
                let block = if self.one_in(3) { self.waiting_block() } else { self.block(depth, 3) };
                Op::Launch(block, how)
            }
            14 | 15 => Op::Scope(self.block(depth, 2), self.blocks(depth)),
            16 | 17 => {
                let body = self.block(depth, 3);
                let kill = match self.below(4) {
                    0 => Kill::Never,
                    1 => Kill::First,
                    _ => Kill::After(self.block(depth, 2)),
                };
                Op::Cancellable(body, kill)
            }
            18 => Op::Shield(self.block(depth, 3)),
            19 => Op::Choose(self.blocks(depth)),
            20 => Op::Patched(self.place(2), self.block(depth, 2)),
            // Outside the root it is passed over; inside a race or a scope of the root it may be dropped half way.
            21 | 22 => {
                let timeout = (self.below(2) == 0).then_some(value);
                let handler = (self.below(2) == 0).then(|| self.block(depth, 2));
                Op::Phase(Phase { until: 1 + self.below(2), timeout, serial: self.one_in(2), handler })
            }
            23 => Op::Shield(self.block(depth, 3)),
            _ if root => Op::OnUpdate(self.place(2), self.block(depth, 2)),
            _ => Op::Parallel(self.blocks(depth)),
        }
    }
}

fn loose(op: Op) -> Step {
    Step { op, strict: false }
}

/// An operation without blocks, for tests that change a program.
pub(crate) fn any_leaf(rng: &mut Rng) -> Op {
    Draw { rng, budget: 0 }.leaf()
}
