//! What is killed, fails, is cut or is damaged: nothing that was acknowledged is lost, nothing happens
//! twice, and whatever is wrong is told with its place.
//!
//! `cargo test` tries a little of everything; `tests/crash/run.sh` runs the same tests as a campaign.

mod again;
mod cut;
mod lost;
mod opened;
#[cfg(feature = "cli")]
mod killed;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod synced;

/// How much is tried: as much as this variable says, which `tests/crash/run.sh` sets.
#[expect(
    clippy::disallowed_methods,
    reason = "how much to try is the caller's choice"
)]
fn times(variable: &str, usual: u64) -> u64 {
    let said = std::env::var(variable).ok();
    said.and_then(|times| times.parse().ok()).unwrap_or(usual)
}

/// Numbers that follow from a seed, by the splitmix64 generator.
#[derive(Clone, Debug)]
struct Draw(u64);

impl Draw {
    /// The next number below this one.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let drawn = (mixed ^ (mixed >> 31)) % limit as u64;
        usize::try_from(drawn).unwrap()
    }
}
