//! Out and back, from outside: the simulated network, the delivery reports, and those who receive them.
//!
//! Each test has a service and receivers of its own, waits for what must come with a deadline, and shows that
//! something does not come by waiting for what is bound to come after it.

mod crowd;
mod door;
mod guard;
mod inbox;
mod judging;
mod listen;
mod pausing;
mod post;
mod replay;
mod reports;
mod restart;
mod scheduled;
mod slow_receivers;
