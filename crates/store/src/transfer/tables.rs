//! Every table, and how it is copied.
//!
//! Columns are read from the system catalogues: a column that both databases have is copied without being listed. Only
//! differences are listed here, and an unlisted table or column stops the copy.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

/// A table that is copied.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The key of a row in both databases.
    pub(crate) key: &'static [&'static str],
    pub(crate) copy_time: CopyTime,
    /// The number of rows that are read at a time.
    pub(crate) page: usize,
    /// Columns with sums that are compared afterwards.
    pub(crate) sums: &'static [&'static str],
    /// Columns by which rows are counted afterwards.
    pub(crate) by: &'static [&'static str],
    sqlite: Differences,
    postgres: Differences,
}

/// When the rows of a table are copied.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CopyTime {
    /// All at once, when the source is not in use any more.
    Changing,
    /// Rows that do not change any more are copied at any time, the rest at the end. Keys are numbers or bytes, because
    /// both databases must order them equally.
    Growing {
        /// The rows that do not change any more.
        settled: &'static str,
        /// Columns that show whether a row has changed since it was copied.
        watched: &'static [&'static str],
    },
}

/// How a table differs in one database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Differences {
    /// Columns that only this database has, and that the other does not need.
    pub(crate) own: &'static [&'static str],
    /// A query that is read instead of the table, if its rows are in several tables.
    pub(crate) from: Option<&'static str>,
    /// Columns that are read by an expression, whether or not there is a column of that name.
    pub(crate) read: &'static [(&'static str, &'static str)],
    /// Columns that are computed from columns of the other database, which are in braces.
    pub(crate) write: &'static [(&'static str, &'static str)],
    /// The columns that order the rows; the key when empty.
    pub(crate) order: &'static [&'static str],
}

const NONE: Differences = Differences {
    own: &[],
    from: None,
    read: &[],
    write: &[],
    order: &[],
};

/// Held rows become unheld, because the target does not know the nodes of the source.
const UNHELD: (&str, &str) = ("owner", "CASE WHEN owner > 0 THEN 0 ELSE owner END");
const UNHELD_ROWS: Differences = Differences {
    read: &[UNHELD],
    ..NONE
};
/// Only `PostgreSQL` has the message ID in the row itself.
const UNHELD_CALLBACKS: Differences = Differences {
    read: &[
        UNHELD,
        (
            "message_id",
            "(SELECT c.message_id FROM callback AS c WHERE c.id = callback_queue.id)",
        ),
    ],
    ..NONE
};
/// A table of one row without a key.
const BY_ROWID: Differences = Differences {
    order: &["rowid"],
    ..NONE
};

const PAGE: usize = 2_000;

impl Table {
    const fn changing(name: &'static str, key: &'static [&'static str]) -> Self {
        Self {
            name,
            key,
            copy_time: CopyTime::Changing,
            page: PAGE,
            sums: &[],
            by: &[],
            sqlite: NONE,
            postgres: NONE,
        }
    }

    const fn growing(
        name: &'static str,
        key: &'static [&'static str],
        settled: &'static str,
        watched: &'static [&'static str],
    ) -> Self {
        Self {
            copy_time: CopyTime::Growing { settled, watched },
            ..Self::changing(name, key)
        }
    }

    const fn sums(mut self, sums: &'static [&'static str]) -> Self {
        self.sums = sums;
        self
    }

    const fn by(mut self, by: &'static [&'static str]) -> Self {
        self.by = by;
        self
    }

    const fn page(mut self, rows: usize) -> Self {
        self.page = rows;
        self
    }

    const fn differing(mut self, sqlite: Differences, postgres: Differences) -> Self {
        self.sqlite = sqlite;
        self.postgres = postgres;
        self
    }

    /// How the table differs in one of the databases.
    pub(crate) fn differences(&self, engine: Engine) -> &Differences {
        match engine {
            Engine::Sqlite => &self.sqlite,
            Engine::Postgres => &self.postgres,
        }
    }

    /// The expression that reads a column.
    pub(crate) fn expression<'a>(&self, engine: Engine, column: &'a str) -> &'a str {
        let read = self.differences(engine).read.iter();
        let mut found = read.filter(|(name, _)| *name == column);
        found.next().map_or(column, |(_, expression)| expression)
    }

    /// The source of its rows, for a `FROM` clause.
    pub(crate) fn rows(&self, engine: Engine) -> String {
        match self.differences(engine).from {
            Some(rows) => format!("({rows}) AS {}", self.name),
            None => self.name.to_owned(),
        }
    }

    /// The columns that its rows are sorted by.
    pub(crate) fn order(&self, engine: Engine) -> &'static [&'static str] {
        match self.differences(engine).order {
            [] => self.key,
            order => order,
        }
    }
}

/// Tables that are not copied: the history of the schema, and the state of the nodes.
pub(crate) const NOT_COPIED: &[&str] = &[
    "schema_migration",
    "schema_fit",
    "node",
    "carrier",
    "bind",
    "bind_wish",
    "smpp_bind",
    "smpp_session",
    "callback_replay",
];

/// Tables that only `PostgreSQL` has. Their rows are read together with those of another table.
pub(crate) const ONLY_POSTGRES: &[&str] = &["traffic_fresh"];

/// Counts that are not added up yet are added up while copying.
const COUNTED: Differences = Differences {
    from: Some(
        "SELECT account_id, span, begins, channel, network, status, error, shard,
            CAST(sum(messages) AS BIGINT) AS messages, CAST(sum(parts) AS BIGINT) AS parts,
            CAST(sum(cost_micros) AS BIGINT) AS cost_micros
        FROM (SELECT account_id, span, begins, channel, network, status, error, shard, messages, parts, cost_micros
            FROM traffic
            UNION ALL
            SELECT f.account_id, s.span, f.hour / s.hours, f.channel, CASE s.span WHEN 1 THEN f.network ELSE 0 END,
                f.status, f.error, 0::smallint, f.messages, f.parts, f.cost_micros
            FROM traffic_fresh AS f CROSS JOIN (VALUES (0::smallint, 1), (1::smallint, 24)) AS s (span, hours)) AS t
        GROUP BY 1, 2, 3, 4, 5, 6, 7, 8",
    ),
    ..NONE
};

const COUNTED_LATENCIES: Differences = Differences {
    from: Some(
        "SELECT account_id, day, bucket, CAST(sum(messages) AS BIGINT) AS messages
        FROM (SELECT account_id, day, bucket, messages FROM latency_day
            UNION ALL
            SELECT account_id, hour / 24, bucket, messages FROM traffic_fresh WHERE bucket IS NOT NULL) AS t
        GROUP BY 1, 2, 3",
    ),
    ..NONE
};

/// The copied tables, each after those that its rows refer to.
pub(crate) const TABLES: &[Table] = &[
    Table::changing("account", &["id"]).sums(&["id", "credit_limit_micros"]),
    Table::changing("person", &["id"]).sums(&["id"]),
    Table::changing("token", &["id"]).sums(&["id"]),
    Table::changing("smpp_user", &["id"]).sums(&["id"]),
    Table::changing("sign_in_link", &["hash"]),
    Table::changing("session", &["hash"]),
    Table::changing("membership", &["person_id", "account_id"]),
    Table::changing("invitation", &["hash"]),
    Table::changing("recovery_code", &["person_id", "hash"]),
    Table::changing("half_open", &["hash"]),
    Table::changing("oauth_client", &["id"]),
    Table::changing("oauth_request", &["hash"]),
    Table::changing("oauth_grant", &["id"]).sums(&["id"]),
    Table::changing("sender", &["id"])
        .sums(&["id"])
        .by(&["state"]),
    // One version may have megabytes.
    Table::growing(
        "catalogue",
        &["kind", "account_id", "version"],
        "TRUE",
        &["at_us"],
    )
    .sums(&["version", "row_count"])
    .page(1),
    Table::growing("audit", &["id"], "TRUE", &["at_us"]).sums(&["id"]),
    Table::growing(
        "ledger",
        &["account_id", "id"],
        "TRUE",
        &["at_us", "amount_micros", "balance_micros"],
    )
    .sums(&["amount_micros", "messages", "spent_micros"])
    .by(&["kind"]),
    Table::growing(
        "traffic",
        &[
            "account_id",
            "span",
            "begins",
            "channel",
            "network",
            "status",
            "error",
            "shard",
        ],
        "TRUE",
        &["messages", "parts", "cost_micros"],
    )
    .sums(&["messages", "parts", "cost_micros"])
    .differing(NONE, COUNTED),
    Table::growing(
        "latency_day",
        &["account_id", "day", "bucket"],
        "TRUE",
        &["messages"],
    )
    .sums(&["messages"])
    .differing(NONE, COUNTED_LATENCIES),
    Table::growing(
        "message",
        &["id"],
        "final_us IS NOT NULL",
        &["final_us", "status", "error", "seen_us"],
    )
    .sums(&["id", "parts", "price_micros"])
    .by(&["state", "status"]),
    Table::changing("transit", &["carrier", "reference", "taken_us", "id"])
        .sums(&["id"])
        .by(&["status"])
        // Rows are numbered in the order of insertion, so that the oldest are found first.
        .differing(
            Differences {
                own: &["number"],
                order: &["number"],
                ..NONE
            },
            Differences {
                order: &["taken_us", "id"],
                ..NONE
            },
        ),
    Table::changing("early_receipt", &["carrier", "reference", "tail"]).by(&["status"]),
    Table::changing("verification", &["id"])
        .sums(&["id", "tries"])
        .by(&["state"]),
    Table::changing("code_text", &["message_id"]).sums(&["message_id"]),
    Table::changing("code_sent", &["number", "sent_us", "account_id"]).sums(&["sent_us"]),
    Table::changing("sign_in_try", &["key"]).sums(&["count"]),
    Table::changing("known_browser", &["hash", "person_id"]).sums(&["person_id"]),
    // The owner of a queue row may be a pool.
    Table::changing("pool", &["id"]).sums(&["id"]),
    Table::changing("queue", &["owner", "lane", "due_us", "id"])
        .sums(&["id", "attempt"])
        .by(&["lane"])
        .differing(UNHELD_ROWS, UNHELD_ROWS),
    Table::growing(
        "idempotency",
        &["account_id", "key"],
        "TRUE",
        &["first_id", "expires_us"],
    )
    .sums(&["first_id", "messages"]),
    Table::changing(
        "recipient_sent",
        &["account_id", "recipient", "at_us", "message_id"],
    )
    .sums(&["message_id"]),
    Table::growing(
        "callback",
        &["id"],
        "state <> 0",
        &["state", "tries", "created_us"],
    )
    .sums(&["id", "message_id", "tries"])
    .by(&["state"]),
    Table::growing(
        "callback_attempt",
        &["callback_id", "number"],
        "TRUE",
        &["at_us"],
    )
    .sums(&["callback_id", "number", "elapsed_ms"])
    // In SQLite, one column has both numbers, and only PostgreSQL stores the message ID.
    .differing(
        Differences {
            read: &[
                ("callback_id", "id >> 20"),
                ("number", "id & 1048575"),
                (
                    "message_id",
                    "(SELECT c.message_id FROM callback AS c WHERE c.id = callback_attempt.id >> 20)",
                ),
            ],
            write: &[("id", "({callback_id} << 20) | {number}")],
            order: &["id"],
            ..NONE
        },
        NONE,
    ),
    Table::changing("callback_queue", &["owner", "due_us", "id"])
        .sums(&["id", "attempt"])
        .differing(UNHELD_CALLBACKS, UNHELD_ROWS),
    Table::changing("alert", &["topic", "subject"]).by(&["level"]),
    Table::changing("notification", &["id"]).sums(&["id", "tries"]),
    Table::changing("notify_setting", &["account_id"]).sums(&["account_id"]),
    Table::changing("inbound_number", &["digits", "keyword"]).sums(&["account_id"]),
    Table::growing("inbound", &["id"], "TRUE", &["received_us"])
        .sums(&["id", "received_us"])
        .by(&["coding"]),
    Table::changing(
        "inbound_part",
        &[
            "carrier",
            "sender",
            "number",
            "reference",
            "total",
            "set_number",
            "sequence",
        ],
    )
    .sums(&["sequence"]),
    Table::changing("account_reply", &["account_id", "request", "language"]).by(&["request"]),
    Table::changing("inbound_reply", &["id"]).sums(&["id"]),
    Table::changing("inbound_copy", &["session", "number"]).sums(&["number"]),
    Table::changing("inbound_source", &["hash"]).sums(&["inbound_id"]),
    Table::changing("opt_out", &["account_id", "recipient", "sender"])
        .sums(&["recipient", "change"])
        .by(&["via"]),
    Table::changing("block_rule", &["kind", "value"]).by(&["kind"]),
    Table::changing("ported_number", &["number"]).sums(&["number", "network", "change"]),
    Table::changing("text_template", &["account_id", "name"]).sums(&["account_id"]),
    Table::changing("refused_request", &["account_id", "at_us"]).sums(&["at_us", "status"]),
    Table::changing("report_poll", &["carrier", "id"]).sums(&["id", "due_us"]),
    Table::changing("list_change", &[])
        .sums(&["opt_outs", "blocks", "ported", "ported_removed"])
        .differing(BY_ROWID, NONE),
    // Encrypted values are copied unchanged, so the target needs the same key.
    Table::changing("service_key", &["one"]),
    Table::changing("id_block", &[]).differing(BY_ROWID, NONE),
    Table::changing("access_version", &[])
        .sums(&["version"])
        .differing(BY_ROWID, NONE),
];

/// Tables with a single row, which a new database has from the beginning or after it was first opened.
pub(crate) const NEVER_EMPTY: &[&str] =
    &["id_block", "access_version", "service_key", "list_change"];
