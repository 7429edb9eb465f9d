//! The generator behind policies, user randomness and ids: xoshiro256++, version 1.
//!
//! It is implemented here, and not taken from a dependency, because its output is part of what a recorded run means:
//! the same seed must give the same numbers for ever. `tests/golden` pins it.

/// The name of the generator, as the header of a choice log gives it.
pub(crate) const ALGORITHM: &str = "xoshiro256++";
/// The version of the generator. It is raised if the generator or the way it is seeded ever changes.
pub(crate) const VERSION: u32 = 1;

/// A seeded xoshiro256++ generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng([u64; 4]);

impl Rng {
    /// Creates a generator whose state is spread from one number, as the authors of the algorithm advise.
    pub fn from_seed(seed: u64) -> Self {
        let mut spread = seed;
        Self(std::array::from_fn(|_| {
            spread = spread.wrapping_add(GOLDEN);
            mix(spread)
        }))
    }

    /// Returns 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// Returns a number below `bound`; all are equally likely. `bound` must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a draw needs something to draw from");
        // Lemire's method: the few low products that would favour small numbers are drawn again.
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// Returns a number from 0 up to, but not including, 1.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads every input bit over the whole word: SplitMix64's output function.
pub(crate) const fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Derives a seed from another seed and a number, for streams that must not disturb each other.
pub(crate) const fn derive(seed: u64, number: u64) -> u64 {
    mix(seed ^ mix(number.wrapping_add(GOLDEN)))
}
