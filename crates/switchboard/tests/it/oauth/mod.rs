//! The authorization server from outside: the real binary and its sockets. A person's answer is given on the same
//! database, as the consent page gives it.
//!
//! A case that must fail also says that nothing was issued: no request kept, no grant, no token.

pub(crate) mod site;

mod asking;
mod documents;
mod flow;
mod redeeming;
mod registering;
mod renewing;
mod served;
