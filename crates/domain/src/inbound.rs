//! Messages from handsets: their numbers, their parts, their texts, and the words by which people opt out.

pub mod assembly;
pub mod header;
pub mod language;
pub mod message;
pub mod number;
pub mod text;
pub mod words;
