//! Numbers that look drawn and are the same every time.

/// A row of numbers that follows from its seed alone: splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    /// The row of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        // A remainder favours small numbers by less than anybody can see.
        self.next().checked_rem(end).unwrap_or_default()
    }

    /// One of several, of which there must be one at least.
    pub(crate) fn one<'a, T>(&mut self, several: &'a [T]) -> &'a T {
        let place = self.below(several.len() as u64);
        &several[usize::try_from(place).unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_row_that_others_give_for_it() {
        let mut draw = Draw::new(1_234_567);
        let row = [draw.next(), draw.next(), draw.next()];
        assert_eq!(
            row,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
            ]
        );
        assert!((0..100).all(|_| draw.below(3) < 3));
        assert_eq!(draw.below(0), 0);
    }
}
