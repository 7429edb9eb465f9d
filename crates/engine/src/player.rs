//! The player of a run: one thread at a time, and not for ever. A turn that does not return in time is taken from it: the
//! run is parked and played by another, and whatever the first one still comes to is void.

use std::sync::Arc;

use dacapo_core::{Activation, Completion, Run};
use dacapo_worker::Deadlock;

use crate::inner::Inner;
use crate::live::{Live, Stage};

impl Inner {
    /// Plays an activation under the deadlock watch. None if the run was taken from this player meanwhile.
    pub(crate) fn activate(
        self: &Arc<Self>,
        live: &Arc<Live>,
        player: u64,
        run: &mut Run,
        activation: Activation,
    ) -> Option<Completion> {
        let (this, stuck) = (Arc::downgrade(self), live.clone());
        let give_up = move |deadlock| {
            if let Some(this) = this.upgrade() {
                this.replace_player(stuck, player, deadlock);
            }
        };
        let watched = self.host.watch(run.watch(), Box::new(give_up));
        let completion = run.activate(activation);
        drop(watched);
        (live.lock().player == player).then_some(completion)
    }

    /// A player does not return: all it took is put back, and the run says why it does not go on.
    fn replace_player(self: &Arc<Self>, live: Arc<Live>, player: u64, deadlock: Deadlock) {
        let mut state = live.lock();
        if state.player != player || state.gone {
            return;
        }
        state.player += 1;
        state.put_back_all();
        state.stage = Stage::Busy;
        drop(state);
        self.later(move |this| this.park(live, deadlock.reason));
    }
}
