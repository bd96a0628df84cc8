//! The one integration-test binary: black-box tests over the real program, and the suites that need several rooms.

mod at_rest;
mod chain;
mod commands;
mod dashboard;
mod database;
mod deliver;
mod faults;
mod mcp;
mod nodes;
mod oauth;
mod people;
mod postgres_tls;
mod rest;
mod routing;
mod smpp;
mod tidy;
mod transfer;
