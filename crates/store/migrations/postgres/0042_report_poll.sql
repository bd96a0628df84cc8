-- Messages whose reports a carrier asks for. provider_id: the provider's ID of the message, empty if it is asked by ours.
-- due_us: when to ask next. The node that asks moves it on first, so one node asks at a time.
CREATE TABLE report_poll (
    carrier     TEXT   NOT NULL,
    id          BIGINT NOT NULL,
    provider_id TEXT   NOT NULL,
    taken_us    BIGINT NOT NULL,
    due_us      BIGINT NOT NULL,
    expires_us  BIGINT NOT NULL,
    PRIMARY KEY (carrier, id)
);
CREATE INDEX report_poll_due ON report_poll (carrier, due_us);
CREATE INDEX report_poll_expires ON report_poll (expires_us);
