-- The caller's trace (W3C Trace Context): 16 bytes of the trace, 8 of the parent, 1 of flags. NULL for most messages.
ALTER TABLE message ADD COLUMN trace BYTEA;
-- Only for callbacks that are stored in full.
ALTER TABLE callback ADD COLUMN trace BYTEA;
