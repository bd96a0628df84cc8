//! The one integration-test binary: black-box tests over the real program, and the suites that need several rooms.

mod at_rest;
mod chain;
mod commands;
mod contract;
mod dashboard;
mod deliver;
mod faults;
mod mcp;
mod nodes;
mod oauth;
mod people;
mod pooled;
mod postgres_tls;
mod rest;
mod routing;
mod smpp;
mod tidy;
mod transfer;
