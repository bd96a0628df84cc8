//! The SMPP carrier against a scripted SMSC.

mod binds;
mod faults;
mod handsets;
mod links;
mod pace;
mod receipts;
mod sending;
mod setup;
mod tls;
