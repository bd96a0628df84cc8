//! The authorization server from outside: the real binary and its sockets. The tests store a person's consent in the
//! same database, as the consent page does.
//!
//! A case that must fail also checks that nothing was issued: no request, no grant, no token.

pub(crate) mod site;

mod authorizing;
mod documents;
mod flow;
mod redeeming;
mod refreshing;
mod registering;
mod served;
