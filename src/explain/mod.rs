//! Why a request reads as it does: what each message comes from, what changed from one request to
//! another, and the life of an entry in all of them.
//!
//! Nothing here decides anything, and nothing is recorded: views are read, as they stood when a
//! request was made. [`blame`] takes one request apart, [`compare`] holds two against each other,
//! [`lives`] follows entries through the whole run.

mod blame;
mod compare;
mod life;
mod look;
mod moment;
mod remedy;

pub use blame::{Blamed, blame};
pub use compare::{Amount, Comparison, Difference, FirstChange, Kind, compare};
pub use life::{Fetched, Life, Read, Stretch, Subject, Way, lives};
pub use look::{Holds, How};
pub use moment::{Moment, Sent};
pub use remedy::Remedy;
