-- What a lookup's caller is told, when a receipt brings that before the carrier's answer is stored.
ALTER TABLE transit ADD COLUMN report TEXT;

-- How the carriers of each node do, as the node noted it last; forgotten with the node. health: up, strained or down.
-- waiting: messages in the node's memory, under_way: parts. The note is bytes: a carrier may be quoted in it.
CREATE TABLE carrier (
    node      BIGINT  NOT NULL,
    name      TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    health    TEXT    NOT NULL,
    links_up  INTEGER NOT NULL,
    links     INTEGER NOT NULL,
    note      BYTEA,
    waiting   BIGINT  NOT NULL,
    under_way BIGINT  NOT NULL,
    at_us     BIGINT  NOT NULL,
    PRIMARY KEY (node, name)
);
