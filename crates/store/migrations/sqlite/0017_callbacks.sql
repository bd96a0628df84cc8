-- callback_queue.owner: 0 waits for its time, a positive number is the node that holds it, and from here on a negative
-- one is the queue of a receiver, an account's callbacks to one scheme, host and port. What waits there is due, and stays
-- until its receiver has room. Older programs would never look there.

-- Requests of people to send callbacks again now, for an hour: nodes that see one end the pauses of the receivers that it
-- names. account_id NULL: of all accounts. url_prefix: the beginning of their URLs.
CREATE TABLE IF NOT EXISTS callback_replay (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER,
    url_prefix BLOB    NOT NULL,
    at_us      INTEGER NOT NULL
);
