//! Every metric, with its help. `docs/METRICS.md` lists the same, which a test checks.

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Metric {
    pub(super) kind: Kind,
    /// The name, and the names of its labels in braces. Each label has a limited number of values.
    pub(super) series: &'static str,
    pub(super) help: &'static str,
}

impl Metric {
    pub(super) fn name(&self) -> &'static str {
        self.series.split('{').next().unwrap_or(self.series)
    }
}

const fn counter(series: &'static str, help: &'static str) -> Metric {
    metric(Kind::Counter, series, help)
}

const fn gauge(series: &'static str, help: &'static str) -> Metric {
    metric(Kind::Gauge, series, help)
}

const fn histogram(series: &'static str, help: &'static str) -> Metric {
    metric(Kind::Histogram, series, help)
}

const fn metric(kind: Kind, series: &'static str, help: &'static str) -> Metric {
    Metric { kind, series, help }
}

pub(super) const METRICS: &[Metric] = &[
    counter(
        "switchboard_http_requests_total{status}",
        "Requests answered, by class of status.",
    ),
    histogram(
        "switchboard_http_request_seconds",
        "Time from a request's head to its answer.",
    ),
    counter(
        "switchboard_http_requests_shed_total",
        "Requests answered 503 because too many were in flight.",
    ),
    counter(
        "switchboard_http_connections_refused_total",
        "Connections closed at once because their address had too many.",
    ),
    counter(
        "switchboard_http_connections_stalled_total",
        "Connections closed because the client did not read its answer.",
    ),
    counter(
        "switchboard_sign_ins_total{outcome}",
        "Sign-ins to the dashboard: right or wrong.",
    ),
    counter(
        "switchboard_messages_accepted_total{channel}",
        "Messages stored, one for each recipient.",
    ),
    counter(
        "switchboard_parts_accepted_total{channel}",
        "SMS parts stored.",
    ),
    counter(
        "switchboard_accept_batches_total",
        "Transactions that stored messages.",
    ),
    counter(
        "switchboard_accept_failures_total",
        "Transactions that failed to store messages.",
    ),
    counter(
        "switchboard_submissions_unpaid_total",
        "Submissions refused because of the balance or a limit of the account.",
    ),
    counter(
        "switchboard_verifications_total{outcome}",
        "One-time codes: sent, limited or slowed instead of sent, approved by the right code, or failed by wrong ones.",
    ),
    counter(
        "switchboard_messages_cancelled_total",
        "Scheduled messages that were cancelled.",
    ),
    counter(
        "switchboard_messages_replaced_total",
        "Replacements of scheduled messages.",
    ),
    counter(
        "switchboard_messages_ended_total{channel,carrier,country,outcome}",
        "Messages in their final state: delivered, failed or expired.",
    ),
    histogram(
        "switchboard_message_seconds",
        "Time from the acceptance of a message, or its scheduled time, to its final state.",
    ),
    gauge(
        "switchboard_messages_waiting{lane}",
        "Due messages that no carrier has taken yet, on all nodes, up to 100,000.",
    ),
    gauge(
        "switchboard_messages_oldest_seconds{lane}",
        "How long the oldest of them has been due.",
    ),
    gauge(
        "switchboard_messages_held",
        "Messages that wait in the memory of this node.",
    ),
    counter(
        "switchboard_send_retries_total",
        "Attempts after which a message waits for another attempt.",
    ),
    counter(
        "switchboard_messages_pooled_total",
        "Claimed messages for which memory had no capacity; they wait in the database.",
    ),
    counter(
        "switchboard_messages_handed_on_total",
        "Messages left to other nodes, which have a link to the carrier.",
    ),
    counter(
        "switchboard_messages_set_aside_total",
        "Messages whose stored rows cannot be read.",
    ),
    gauge(
        "switchboard_carrier_health{carrier}",
        "0 down, 1 strained, 2 up, as this node sees it.",
    ),
    gauge(
        "switchboard_carrier_links_up{carrier}",
        "Links of this node that are up.",
    ),
    gauge(
        "switchboard_carrier_waiting{carrier}",
        "Messages that wait for the carrier in the memory of this node.",
    ),
    gauge(
        "switchboard_carrier_under_way{carrier}",
        "Parts without an answer.",
    ),
    gauge(
        "switchboard_carrier_pooled{carrier}",
        "Messages that wait for the carrier, or the carriers of a route, in the database, up to 100,000.",
    ),
    gauge(
        "switchboard_carrier_pooled_oldest_seconds{carrier}",
        "How long the oldest of them has been due.",
    ),
    counter(
        "switchboard_carrier_submits_total{carrier,result}",
        "Messages given to carriers, by answer.",
    ),
    counter(
        "switchboard_smpp_throttled_total{carrier}",
        "SMPP answers that asked for less.",
    ),
    counter(
        "switchboard_inbound_parts_total{outcome}",
        "Texts and parts of texts from handsets, stored or recognised as a repetition.",
    ),
    counter(
        "switchboard_smpp_received_total{carrier,kind}",
        "Receipts and messages from SMPP carriers.",
    ),
    gauge(
        "switchboard_smpp_sessions",
        "Sessions of customers with this node.",
    ),
    counter(
        "switchboard_smpp_binds_total{result}",
        "Binds of customers, by result.",
    ),
    counter(
        "switchboard_smpp_submits_total{result}",
        "Messages that customers submitted by SMPP, by result.",
    ),
    counter(
        "switchboard_smpp_connections_refused_total",
        "SMPP connections of customers that were closed because there were too many.",
    ),
    counter(
        "switchboard_callback_tries_total{outcome}",
        "Attempts to deliver a callback: received or failed.",
    ),
    gauge(
        "switchboard_callbacks_held",
        "Callbacks in the memory of this node.",
    ),
    gauge(
        "switchboard_callbacks_waiting",
        "Callbacks that were not received yet, on all nodes, up to 20,000.",
    ),
    gauge(
        "switchboard_callbacks_oldest_seconds",
        "How long the oldest of them has been waiting.",
    ),
    gauge(
        "switchboard_callback_host_waiting{host}",
        "Callbacks that wait for a host.",
    ),
    gauge(
        "switchboard_callback_host_oldest_seconds{host}",
        "How long the oldest of them has been waiting.",
    ),
    counter(
        "switchboard_callbacks_unreadable_total",
        "Callbacks that were parked because their row cannot be read.",
    ),
    gauge(
        "switchboard_account_balance_units{account}",
        "The balance, in units of billing.currency.",
    ),
    gauge(
        "switchboard_account_left_days{account}",
        "How many days the balance lasts at today's rate, at most 3650.",
    ),
    histogram(
        "switchboard_database_commit_seconds",
        "Time that a commit takes.",
    ),
    gauge(
        "switchboard_database_size_bytes",
        "The size of the database.",
    ),
    gauge(
        "switchboard_database_wal_bytes",
        "The size of the write-ahead log.",
    ),
    gauge(
        "switchboard_database_connections_busy",
        "Connections of this node that are in use; on SQLite those that read.",
    ),
    gauge(
        "switchboard_database_connections_max",
        "The most connections of this node.",
    ),
    gauge(
        "switchboard_database_connections_waiting",
        "Callers that wait for a connection.",
    ),
    gauge(
        "switchboard_disk_free_bytes",
        "Free space on the disk of the data folder.",
    ),
    gauge(
        "switchboard_disk_size_bytes",
        "The size of the disk of the data folder.",
    ),
    gauge(
        "switchboard_certificate_left_seconds",
        "Time until the certificate of the listener expires.",
    ),
    gauge(
        "switchboard_clock_difference_seconds",
        "The machine's clock minus the database's.",
    ),
    counter(
        "switchboard_rows_released_total{queue}",
        "Rows that this node held without knowing, put back into the queue: messages or callbacks.",
    ),
    counter(
        "switchboard_task_restarts_total{task}",
        "Background tasks that panicked and were started again.",
    ),
    counter(
        "switchboard_spans_total{outcome}",
        "Spans of traced messages, by whether the collector took them.",
    ),
];

/// Registers the help of every metric.
pub(super) fn describe() {
    for metric in METRICS {
        match metric.kind {
            Kind::Counter => metrics::describe_counter!(metric.name(), metric.help),
            Kind::Gauge => metrics::describe_gauge!(metric.name(), metric.help),
            Kind::Histogram => metrics::describe_histogram!(metric.name(), metric.help),
        }
    }
}
