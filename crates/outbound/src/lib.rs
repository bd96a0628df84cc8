//! Every way out of the service: carriers, callbacks, guarded fetches.
//!
//! What belongs here: the connectors that hand messages to a network (a simulated one, SMPP, an upstream that speaks
//! our own API), the delivery of callbacks, and the guard that decides which addresses may be dialled.
//!
//! What never enters: rules. What is sent, to whom and what follows from the answer is decided in `engine`.
//!
//! The room is empty so far: messages are accepted and kept; nothing leaves yet.
