//! Real processes on a real file, killed at random moments. The seed is printed; `DACAPO_KILL_SEED` sets it, and
//! `DACAPO_KILLS` how many kills there are.

mod audit;
mod deaths;
mod hazard;
mod journey;
mod mill;
mod one_server;

use std::env;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use audit::Audit;
use mill::{Ended, Mill};

/// How many pieces of work are on one file.
const PIECES: usize = 42;

/// Processes are killed at random moments, 200 in all, and started again until all work is done; then the next file is
/// begun. At every moment: each run ends with its right result, each result is recorded once, stored turns stay as they
/// were, with the choices of random policies, no attempt runs before its turn is stored, and an attempt is made again only
/// if it had run, unrecorded, at a kill.
///
/// S1-73 S2-5 S2-16 S4-51
#[test]
fn work_of_a_process_killed_at_random_moments_is_done_once() {
    let number = |name: &str| env::var(name).ok().map(|value| value.parse::<u64>().expect(name));
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = number("DACAPO_KILL_SEED").unwrap_or_else(now);
    let kills = number("DACAPO_KILLS").unwrap_or(200);
    println!("DACAPO_KILL_SEED={seed}");
    let (mut dice, begun) = (Dice(seed), Instant::now());
    let (mut killed, mut files, mut attempts, mut lost, mut most_lost) = (0, 0, 0, 0, 0);
    while killed < kills {
        let mill = Mill::new(PIECES);
        let mut audit = Audit::default();
        files += 1;
        for life in 1.. {
            // Half of the lives are hardly long enough to open the file.
            let longest = [30_000, 200_000][dice.below(2) as usize];
            let patience = (killed < kills).then(|| Duration::from_micros(dice.below(longest)));
            match mill.live(life, patience) {
                Ended::Killed => {
                    killed += 1;
                    most_lost = most_lost.max(audit.after_a_kill(&mill));
                }
                Ended::Done => break,
            }
            assert!(begun.elapsed() < Duration::from_secs(300), "the work is never done");
        }
        audit.assert_done(&mill, PIECES);
        attempts += audit.attempts();
        lost += audit.lost();
    }
    println!(
        "{killed} kills over {files} files with {} pieces of work: {attempts} attempts, {lost} of them lost in kills, \
         at most {most_lost} in one; {:.1?}",
        files * PIECES,
        begun.elapsed()
    );
    assert_eq!(killed, kills);
}

/// Numbers from a seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}
