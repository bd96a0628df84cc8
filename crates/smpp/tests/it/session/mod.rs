//! Sessions against an SMSC that a test scripts.

mod answers;
mod binding;
mod ending;
mod incoming;
mod link;
mod pressure;
mod tls;
mod window;
