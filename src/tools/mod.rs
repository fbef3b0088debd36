//! Tools: what a model may call.
//!
//! Begin with [`Toolbox`]: the tools of a run, their specs, and the check that every call must
//! pass before it runs. A tool is answered in one of two places. A [`Tool`] is answered beside
//! the view (`Compact`, `Recall`, `TodoWrite`, `TodoRead`, `LoadSkill`, a library user's own:
//! see [`typed()`]). Tools that touch the world (`Bash`, `Job`, `Read`, `Write`, `Edit`, `Grep`,
//! `Glob`; one file each; programs of others: [`external`]) are performed by
//! [`hands`](crate::hands), below the roots of a [`Workspace`](workspace::Workspace).
//!
//! Nothing here is repaired or guessed: a call with a wrong name or wrong arguments is answered
//! with what was wrong. Tools have no memory of their own.

pub mod clip;
pub mod schema;
pub mod declared;
mod outcome;
mod arguments;
mod toolbox;
mod typed;
pub mod workspace;
pub mod scope;
mod file;
#[cfg(target_os = "linux")]
pub(crate) mod descent;
pub(crate) mod family;
pub(crate) mod process;
pub(crate) mod capture;
mod finish;
pub(crate) mod background;
pub(crate) mod bash;
mod moves;
pub(crate) mod job;
pub mod external;
pub(crate) mod hook;
mod stand_in;
pub(crate) mod edit;
pub(crate) mod read;
pub(crate) mod write;
mod ignored;
pub(crate) mod walk;
pub(crate) mod survey;
mod wildcard;
mod line;
mod findings;
pub(crate) mod grep;
pub(crate) mod glob;
mod compact;
mod recall;
mod todo;
mod skill;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;

use std::fmt;

use futures::future::BoxFuture;

pub(crate) use self::arguments::is_malformed;
pub use self::compact::Compact;
pub use self::outcome::Outcome;
pub use self::recall::Recall;
pub use self::skill::{LoadSkill, Skill, SkillOrigin};
pub use self::todo::{TodoRead, TodoWrite};
pub use self::toolbox::{Place, Toolbox, UnknownTool};
pub use self::typed::{Typed, typed};

use crate::exchange::ToolSpec;
use crate::id::{CallId, Digest};
use crate::view::View;

/// A tool that is answered beside the view.
pub trait Tool: Send + Sync + fmt::Debug {
    /// What the model and the runtime know of it. Always the same.
    fn spec(&self) -> ToolSpec;

    /// Answers a call. Whatever goes wrong is an outcome as well.
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome>;
}

/// One call of a [`Tool`].
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// Which call it is.
    pub id: CallId,
    /// The arguments: one JSON object that fits the schema.
    pub arguments: &'a str,
    /// The view at the time of the call.
    pub view: &'a View,
    /// Fetches what was clipped away from a result; `None` if it was not kept.
    pub blobs: &'a (dyn Fn(Digest) -> Option<Vec<u8>> + Send + Sync),
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.id)
            .field("arguments", &self.arguments)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
