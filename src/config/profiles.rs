//! Profiles of the user's own: what is said of one, laid over the one it is based on.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::given::{Given, Stated};
use crate::config::read::MeaningError;
use crate::config::section::{or_empty, section};
use crate::profile::{self, Candidate};
use crate::setup::{
    CacheMarkers, CallIds, EmptyContent, MessageOrder, OutputFormat, Profile, Removable,
    SchemaForm, SendBack, SignedArguments,
};

section! {
    /// `profiles.<name>`.
    ProfileSection
    keys {
        /// The built-in profile that holds for what is not said; without it the one of the same name, or `compatible`.
        base: String,
        /// Hosts at which it is taken, such as `[llm.example.org, "*.example.org"]`; with neither hosts nor models it is taken where `model.profile` names it.
        hosts: Vec<String>,
        /// Models for which it is taken, such as `["qwen*"]`.
        models: Vec<String>,
        /// Words by which the provider says that a request is too long, beside those that are known.
        overflow: Vec<String>,
    }
    sections {
        /// Reasoning: whether it goes back (`send_back: always | never`), and which of it compaction may leave out (`removable: any | closed_turns | never`).
        reasoning: ReasoningSection,
        /// Calls: signed arguments (`keep | drop_signature`), the form of ids (`plain | nine`), their greatest length, and what stands in for a signature that is not there.
        calls: CallSection,
        /// Messages: what stands for no text beside calls (`omit | "null" | empty`), their order (`any | alternate`), and whether a user's may follow a result.
        messages: MessageSection,
        /// Parameters: the name of the one for the most tokens of output, whether usage is asked for when streaming, which are never sent, and which always are.
        parameters: ParameterSection,
        /// Tools: the form of their schemas (`full | plain`), the most of them, and their longest name.
        tools: ToolLimitSection,
        /// The provider's cache: what is marked (`none | instructions | request`), and whether requests carry a key.
        cache: CacheSection,
        /// Answers that must fit a schema: how it is sent (`json_schema | json_object | none`), and whether together with tools.
        output: OutputSection,
        /// Usage: whether what is read from the cache is counted apart from what is read afresh.
        usage: UsageSection,
    }
}

section! {
    /// `profiles.<name>.reasoning`.
    ReasoningSection
    keys {
        /// Whether it goes back to the provider.
        send_back: SendBack,
        /// Which of it compaction may leave out.
        removable: Removable,
    }
}

section! {
    /// `profiles.<name>.calls`.
    CallSection
    keys {
        /// What becomes of a signature when the arguments it signs would be stubbed.
        signed_arguments: SignedArguments,
        /// The form of ids.
        ids: CallIds,
        /// The longest id, in characters.
        id_max: NonZeroU32,
        /// Members that stand in for a signature where a message's calls have none.
        unsigned: Map<String, Value>,
    }
}

section! {
    /// `profiles.<name>.messages`.
    MessageSection
    keys {
        /// What stands for the content of an assistant's message that has calls but no text.
        empty_content: EmptyContent,
        /// Which message may follow which.
        order: MessageOrder,
        /// Whether a user's message may follow a result.
        user_after_tool: bool,
    }
}

section! {
    /// `profiles.<name>.parameters`.
    ParameterSection
    keys {
        /// The name of the parameter for the most tokens of output.
        max_output_tokens: String,
        /// Whether usage must be asked for when streaming.
        stream_usage: bool,
        /// Parameters that are never sent.
        leave_out: Vec<String>,
        /// Members of every request, such as `{ top_k: 20 }`.
        add: Map<String, Value>,
    }
}

section! {
    /// `profiles.<name>.tools`.
    ToolLimitSection
    keys {
        /// The form in which schemas of arguments are sent.
        schema: SchemaForm,
        /// The most tools of a request.
        max: NonZeroU32,
        /// The longest name of a tool, in characters.
        name_max: NonZeroU32,
    }
}

section! {
    /// `profiles.<name>.cache`.
    CacheSection
    keys {
        /// What of a request is marked for the cache.
        markers: CacheMarkers,
        /// Whether requests carry a key by which they find their cache.
        key: bool,
    }
}

section! {
    /// `profiles.<name>.output`.
    OutputSection
    keys {
        /// How the provider is told the schema of an answer.
        format: OutputFormat,
        /// Whether it may be told together with tools.
        beside_tools: bool,
    }
}

section! {
    /// `profiles.<name>.usage`.
    UsageSection
    keys {
        /// Whether cached tokens are left out of those that are read.
        cached_apart: bool,
    }
}

/// Members of a request that no profile can add.
const OWN: [&str; 6] = [
    "model",
    "stream",
    "messages",
    "input",
    "instructions",
    "tools",
];

/// The user's own profiles, each over the one it is based on. What says only what is built in is none.
pub(super) fn resolve(
    sections: BTreeMap<String, ProfileSection>,
) -> Result<Vec<Candidate>, MeaningError> {
    let each = sections.into_iter();
    let each = each.map(|(name, section)| candidate(name, section));
    let mut candidates: Vec<Candidate> = each.collect::<Result<_, _>>()?;
    candidates.retain(|candidate| !profile::built_in().contains(candidate));
    Ok(candidates)
}

fn candidate(name: String, section: ProfileSection) -> Result<Candidate, MeaningError> {
    let built_in = profile::built_in().iter();
    let same = built_in
        .clone()
        .find(|candidate| candidate.profile.name == name);
    let based = section.base.clone().get();
    let base = match (&based, same) {
        (None, Some(same)) => same.profile.name.clone(),
        (None, None) => profile::UNKNOWN.to_owned(),
        (Some(base), _) => base.clone(),
    };
    let Some(mut profile) = profile::named(&base) else {
        let hint = super::rule_hint(profile::names().iter(), &base);
        return Err(MeaningError::NoSuchBase { name, base, hint });
    };
    profile.name.clone_from(&name);
    // A change to a built-in one is taken where that one is.
    let mut candidate = same.cloned().unwrap_or_default();
    section.hosts.clone().put(&mut candidate.hosts);
    section.models.clone().put(&mut candidate.models);
    candidate.profile = laid(section, profile);
    let mut added = candidate.profile.parameters.add.keys();
    if let Some(member) = added.find(|member| OWN.contains(&member.as_str())) {
        let member = member.clone();
        return Err(MeaningError::OwnMember { name, member });
    }
    Ok(candidate)
}

fn laid(section: ProfileSection, mut profile: Profile) -> Profile {
    let ProfileSection {
        base: _,
        hosts: _,
        models: _,
        overflow,
        reasoning,
        calls,
        messages,
        parameters,
        tools,
        cache,
        output,
        usage,
    } = section;
    reasoning.send_back.put(&mut profile.reasoning.send_back);
    reasoning.removable.put(&mut profile.reasoning.removable);
    let target = &mut profile.calls;
    calls.signed_arguments.put(&mut target.signed_arguments);
    calls.ids.put(&mut target.ids);
    calls.id_max.map(u32::from).put(&mut target.id_max);
    calls.unsigned.put(&mut target.unsigned);
    let target = &mut profile.messages;
    messages.empty_content.put(&mut target.empty_content);
    messages.order.put(&mut target.order);
    messages.user_after_tool.put(&mut target.user_after_tool);
    let target = &mut profile.parameters;
    parameters
        .max_output_tokens
        .put(&mut target.max_output_tokens);
    parameters.stream_usage.put(&mut target.stream_usage);
    parameters.leave_out.put(&mut target.leave_out);
    parameters.add.put(&mut target.add);
    let target = &mut profile.tools;
    tools.schema.put(&mut target.schema);
    tools.max.map(u32::from).put(&mut target.max);
    tools.name_max.map(u32::from).put(&mut target.name_max);
    cache.markers.put(&mut profile.cache.markers);
    cache.key.put(&mut profile.cache.key);
    output.format.put(&mut profile.output.format);
    output.beside_tools.put(&mut profile.output.beside_tools);
    usage.cached_apart.put(&mut profile.usage.cached_apart);
    overflow
        .map(|words| words.iter().map(|words| words.to_lowercase()).collect())
        .put(&mut profile.overflow);
    profile
}
