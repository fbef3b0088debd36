//! A headless coding-agent runtime whose context never loses anything.

// Ground: plain data.
pub mod id;
pub mod exchange;
pub mod overlay;
pub mod setup;
pub mod transcript;
// Pure: functions over the ground.
pub mod words;
pub mod profile;
pub mod wire;
pub mod meter;
pub mod view;
pub mod address;
pub mod compaction;
pub mod step;
// Edge: the world.
pub mod record;
pub mod model;
pub mod tools;
pub mod hands;
// Top: composition.
pub mod agent;
pub mod replay;
#[cfg(feature = "cli")]
pub mod config;
