//! Which model is asked, and where: the flags that every command takes which asks one.

use clap::Args;
use undertext::config::{Given, Sections};

/// The model and its server.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ModelArgs {
    /// The model, as the server knows it
    #[arg(short, long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    #[arg(long, value_name = "URL")]
    #[arg(help = "The server [default: $OPENAI_BASE_URL or https://api.openai.com/v1]")]
    pub(crate) base_url: Option<String>,
    #[arg(long, value_name = "NAME")]
    #[arg(help = "The variable with its key [default: OPENAI_API_KEY; none with --base-url]")]
    pub(crate) api_key_env: Option<String>,
}

impl ModelArgs {
    /// What the flags say of settings.
    pub(crate) fn say(&self, flags: &mut Sections) {
        let model = &mut flags.model;
        model.name = text(self.model.as_ref());
        model.base_url = text(self.base_url.as_ref());
        model.api_key_env = text(self.api_key_env.as_ref());
    }
}

/// What a flag says of a setting that is text.
pub(crate) fn text(flag: Option<&String>) -> Given<Option<String>> {
    flag.map_or_else(Given::default, |text| Given::value(Some(text.clone())))
}
