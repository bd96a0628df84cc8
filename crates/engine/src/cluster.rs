//! What makes one process a node among others: its heartbeat, its clock, its IDs and the rows that it holds.

pub mod database_clock;
pub(crate) mod held;
pub mod id_blocks;
pub mod node;
