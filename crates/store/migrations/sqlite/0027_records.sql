-- What is known when a message ends: the carrier that took it and when, what that carrier charges for it, and what the
-- account paid in the end. NULL if it is unknown, and in messages that ended before.
ALTER TABLE message ADD COLUMN carrier TEXT;
ALTER TABLE message ADD COLUMN sent_us INTEGER;
ALTER TABLE message ADD COLUMN cost_micros INTEGER;
ALTER TABLE message ADD COLUMN charged_micros INTEGER;
-- What the carrier charges for all parts of the message, until it ends.
ALTER TABLE transit ADD COLUMN cost_micros INTEGER;
-- The roles that see texts in the dashboard: all, none, or roles separated by commas.
ALTER TABLE account ADD COLUMN texts_for TEXT NOT NULL DEFAULT 'all';
