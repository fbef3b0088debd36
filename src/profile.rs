//! The built-in profiles, as data, and how one is chosen.
//!
//! A profile says how a provider deviates. It is recorded in full in every `setup`, so that an old
//! run reads the same when a profile is mended. For now there is one: plain OpenAI, which most
//! compatible servers take.

use crate::setup::Profile;

/// The profile for plain Chat Completions as OpenAI defines them.
pub fn openai() -> Profile {
    Profile::default()
}

/// The built-in profile of this name.
pub fn named(name: &str) -> Option<Profile> {
    let profile = openai();
    (profile.name == name).then_some(profile)
}

/// The names of the built-in profiles.
pub fn names() -> Vec<String> {
    vec![openai().name]
}
