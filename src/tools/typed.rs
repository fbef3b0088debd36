//! A tool made of a function from typed arguments to an outcome: the way for a library user to
//! add one.

use std::fmt;
use std::marker::PhantomData;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::exchange::{Effect, ToolMeta, ToolSpec};
use crate::tools::{Call, Outcome, Tool, schema};

/// A [`Tool`] made of a function: see [`typed()`].
pub struct Typed<Arguments, Run> {
    spec: ToolSpec,
    run: Run,
    arguments: PhantomData<fn(Arguments)>,
}

/// The tool of this name and description that answers a call with what `run` returns.
///
/// The schema is made from the argument type, a struct, and its comments; with
/// `#[serde(deny_unknown_fields)]` unknown arguments are refused. A call is taken to have effects
/// unless [`Typed::reads`] says otherwise.
///
/// ```
/// use undertext::tools::{Outcome, Toolbox, typed};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Add {
///     /// The numbers to add.
///     numbers: Vec<i64>,
/// }
///
/// let add = typed("Add", "Adds numbers.", |arguments: Add| async move {
///     Outcome::ok(arguments.numbers.iter().sum::<i64>().to_string())
/// });
/// let toolbox = Toolbox::builtin().with(add.reads());
/// assert!(toolbox.check("Add", r#"{"numbers": [1, 2]}"#).is_ok());
/// ```
pub fn typed<Arguments, Run, Answer>(
    name: impl Into<String>,
    description: impl Into<String>,
    run: Run,
) -> Typed<Arguments, Run>
where
    Arguments: DeserializeOwned + JsonSchema,
    Run: Fn(Arguments) -> Answer + Send + Sync,
    Answer: Future<Output = Outcome> + Send,
{
    Typed {
        spec: ToolSpec {
            name: name.into(),
            description: description.into(),
            schema: schema::of::<Arguments>(),
            meta: ToolMeta::default(),
        },
        run,
        arguments: PhantomData,
    }
}

impl<Arguments, Run> Typed<Arguments, Run> {
    /// The same tool, whose calls only read: they may run side by side.
    #[must_use]
    pub fn reads(mut self) -> Self {
        self.spec.meta.effect = Effect::Reads;
        self
    }

    /// The same tool with this meta.
    #[must_use]
    pub fn with_meta(mut self, meta: ToolMeta) -> Self {
        self.spec.meta = meta;
        self
    }
}

impl<Arguments, Run> fmt::Debug for Typed<Arguments, Run> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

impl<Arguments, Run, Answer> Tool for Typed<Arguments, Run>
where
    Arguments: DeserializeOwned,
    Run: Fn(Arguments) -> Answer + Send + Sync,
    Answer: Future<Output = Outcome> + Send + 'static,
{
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        match serde_json::from_str(call.arguments) {
            Ok(arguments) => (self.run)(arguments).boxed(),
            Err(error) => {
                let error = Outcome::error(format!("The arguments do not fit: {error}"));
                futures::future::ready(error).boxed()
            }
        }
    }
}
