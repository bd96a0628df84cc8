//! The protocol from outside: octets, framing, sessions.

mod framing;
mod notation;
mod octets;
mod pdus;
mod round_trip;
