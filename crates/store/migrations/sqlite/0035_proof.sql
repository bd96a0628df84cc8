-- When the password was last entered again in a session; NULL: not since signing in.
ALTER TABLE session ADD COLUMN proved_us INTEGER;
