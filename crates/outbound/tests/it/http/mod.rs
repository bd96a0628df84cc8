//! Messages to a provider with an HTTP API of its own, and what it sends.

mod batches;
mod fixture;
mod lookups;
mod polling;
mod reports;
mod sending;
mod texts;
