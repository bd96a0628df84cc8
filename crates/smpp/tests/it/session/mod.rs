//! Sessions with a scripted SMSC.

mod answers;
mod binding;
mod ending;
mod incoming;
mod link;
mod pressure;
mod tls;
mod window;
