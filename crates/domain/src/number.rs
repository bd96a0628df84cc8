//! Phone numbers, and the countries and networks that they belong to.

pub mod country;
pub mod msisdn;
pub mod network;
pub mod ported;
pub mod time_zone;
