//! The tools that hands perform, each called as hands call it, in a temporary workspace.

mod files;
mod search;
mod stand_in;
