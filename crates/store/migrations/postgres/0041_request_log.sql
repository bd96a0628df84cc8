-- Refused requests of programs, the newest of each account.
CREATE TABLE refused_request (
    account_id BIGINT   NOT NULL REFERENCES account (id),
    at_us      BIGINT   NOT NULL,
    token      TEXT     NOT NULL,
    method     TEXT     NOT NULL,
    route      TEXT     NOT NULL,
    status     SMALLINT NOT NULL,
    error      SMALLINT,
    message    TEXT     NOT NULL,
    PRIMARY KEY (account_id, at_us)
);
