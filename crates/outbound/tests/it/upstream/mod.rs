//! Messages to an upstream, and its reports.

pub(crate) mod fixture;
mod reports;
mod sending;
mod unanswered;
