//! Tests of the protocol from outside: octets, framing, sessions.

mod framing;
mod interop;
mod notation;
mod octets;
mod pdus;
mod peer;
mod round_trip;
mod session;
