//! The parts of the model's edge together.

mod calls;
mod client;
mod replies;
