//! Tests of the kit itself. Those of its server, client and load generator need a service to start and are in `bench`.

mod chrome;
mod in_flight;
mod receiver;
