//! The SMPP protocol: a codec for its PDUs and a client session.
//!
//! What belongs here: what any program that speaks SMPP could use.
//!
//! What never enters: anything of this product. No type of ours crosses this line, in either direction.
//!
//! The room is empty so far.
