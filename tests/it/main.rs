//! All integration tests, in one binary.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks for one kind of entry among many"
)]
#![expect(clippy::format_collect, reason = "a test's texts are short")]

#[cfg(test)]
mod map;
#[cfg(test)]
#[cfg(all(feature = "cli", target_os = "linux"))]
mod confined;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod draft;
#[cfg(test)]
mod failing;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod overflow;
#[cfg(test)]
mod edge;
#[cfg(test)]
mod generated;
#[cfg(test)]
mod generate;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod readings;
#[cfg(test)]
mod wire;
#[cfg(test)]
mod layered;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod shelved;
#[cfg(test)]
mod explained;
#[cfg(test)]
mod edited;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod resumed;
#[cfg(test)]
mod micro;
#[cfg(test)]
mod compacted;
#[cfg(test)]
mod desk;
#[cfg(test)]
mod gathered;
#[cfg(test)]
mod merged;
#[cfg(test)]
mod superseding;
#[cfg(test)]
mod staged;
#[cfg(test)]
mod notices;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod by_hand;
#[cfg(test)]
mod ordered;
#[cfg(test)]
mod recalled;
#[cfg(test)]
mod regretted;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod survived;
#[cfg(test)]
mod looped;
#[cfg(test)]
mod many;
#[cfg(test)]
mod stopped;
#[cfg(test)]
mod checked;
#[cfg(test)]
mod answered;
#[cfg(test)]
mod budgets;
#[cfg(test)]
mod long;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod masked;
#[cfg(test)]
mod imported;
#[cfg(test)]
mod indexed;
#[cfg(test)]
mod exported;
#[cfg(test)]
mod offline;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod page;
#[cfg(test)]
mod served;
#[cfg(test)]
#[cfg(feature = "cli")]
mod provider;
#[cfg(test)]
#[cfg(feature = "cli")]
mod cli;
