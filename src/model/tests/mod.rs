//! The parts of the model's edge together.

mod client;
mod replies;
