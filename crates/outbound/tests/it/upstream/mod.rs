//! Messages to an upstream, and its reports.

mod fixture;
mod reports;
mod sending;
