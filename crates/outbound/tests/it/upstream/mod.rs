//! Messages to an upstream, and its reports.

mod reports;
mod scene;
mod sending;
