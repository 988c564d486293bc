//! Numbers by chance that a seed repeats.

/// A generator (xorshift, 64 bits).
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        // Spread: neighbouring seeds give unlike numbers.
        Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 16) % end as u64) as usize
    }

    /// Once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}
