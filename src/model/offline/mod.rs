//! A model that needs neither key nor network: a script in this program, and no LLM.
//!
//! [`reply`] answers one request from what its messages say and from nothing else: it looks for a
//! failing test, reads what failed, searches, reads, tries plain repairs one at a time, and says
//! honestly when it cannot. There is no clock, no chance, and no memory beside the messages; what must
//! outlive a compaction it says in lines that it can read again.
//!
//! [`Offline`] serves it on a loopback port as Chat Completions, so that the real client, the loop, the
//! tools and every compaction run. It knows nothing of any particular project. Begin with `policy`
//! for the rules, `seen` for what is read from messages, `mend` for the repairs.

mod read;
mod change;
mod quote;
mod seen;
mod lex;
mod known;
mod idea;
mod repairs;
mod clues;
mod rank;
mod project;
mod acts;
mod policy;
mod look;
mod diagnose;
mod mend;
mod tell;
mod extract;
mod server;

pub use policy::reply;
pub use read::{Request, RequestError};
pub use server::Offline;

/// The model's name.
pub const NAME: &str = "offline";

/// Its context window, in tokens: small, so that a run of some length is compacted.
pub const WINDOW: u64 = 32_000;
