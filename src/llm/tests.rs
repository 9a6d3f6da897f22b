//! What tests of several rooms share about the APIs of providers.

pub mod judge;
mod streams;
