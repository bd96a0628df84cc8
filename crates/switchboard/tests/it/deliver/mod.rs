//! The simulated network, the delivery reports and their receivers, from outside.
//!
//! Each test has its own service and receivers, and waits with a deadline for what must come. To show that something
//! does not come, it waits for something that must come later.

mod failing_receiver;
mod fixture;
mod guard;
mod hundred_receivers;
mod inbox;
mod listen;
mod pausing;
mod proxy;
mod replay;
pub(crate) mod reports;
mod responses;
mod restart;
mod scheduled;
mod slow_receivers;
mod traces;
