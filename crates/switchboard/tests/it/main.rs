//! The one integration-test binary: black-box tests of the real program, and tests that need several crates.

mod at_rest;
mod chain;
mod clients;
mod commands;
mod dashboard;
mod database;
mod deliver;
mod deploy;
mod faults;
mod http_carrier;
mod mcp;
mod nodes;
mod notify;
mod oauth;
mod packaging;
mod people;
mod postgres_tls;
mod rest;
mod routing;
mod smpp;
mod smpp_server;
mod tidy;
mod transfer;
