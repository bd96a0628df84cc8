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

-- What a message itself tells is not stored again with its report: without url, the address is the message's dlr_url;
-- without payload, the text is a lookup's result or is made from the message's status, error and network. A message is
-- never forgotten before its reports.
ALTER TABLE callback ALTER COLUMN url DROP NOT NULL;
ALTER TABLE callback ALTER COLUMN payload DROP NOT NULL;
