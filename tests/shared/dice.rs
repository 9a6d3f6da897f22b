//! Random numbers for tests that generate their steps. Used by more than one test program.

/// A small generator of random numbers: the seed makes a failure repeatable.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        // No state may be zero, and near seeds shall give far numbers.
        Self((seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}
