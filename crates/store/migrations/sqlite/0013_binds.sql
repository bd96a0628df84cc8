-- The binds of each carrier, counted from 0 to one less than the 'binds' of its configuration. owner: 0 nobody, else the
-- node whose it is for as long as that lives. One that is beyond the number of binds is taken by nobody.
CREATE TABLE bind (
    carrier TEXT NOT NULL,
    slot    INTEGER NOT NULL,
    owner   INTEGER NOT NULL,
    PRIMARY KEY (carrier, slot)
) WITHOUT ROWID;

-- Who would have binds of a carrier: among these they are shared out. Forgotten with the node.
CREATE TABLE bind_wish (
    carrier TEXT NOT NULL,
    node    INTEGER NOT NULL,
    PRIMARY KEY (carrier, node)
) WITHOUT ROWID;

-- Where messages wait that only a node with a link to this carrier can send: their owner in queue is -1 - id.
CREATE TABLE pool (
    id      INTEGER PRIMARY KEY,
    carrier TEXT NOT NULL UNIQUE
);

-- How many links there should be over all nodes; links is how many of them are the node's.
ALTER TABLE carrier ADD COLUMN links_total INTEGER NOT NULL DEFAULT 0;
