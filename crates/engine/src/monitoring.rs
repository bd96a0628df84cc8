//! What operators monitor: counts of ended messages, and gauges that are read from the store at an interval.

pub(crate) mod ended;
pub(crate) mod gauges;
mod hosts;
