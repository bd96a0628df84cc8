//! The icons of the menu: paths of an SVG of 16 by 16, drawn as lines.

const MESSAGES: &str = "M2 3h12v8H7l-3 3v-3H2z";
const INBOX: &str = "M2 9h4l1 2h2l1-2h4M2 9l2-6h8l2 6v4H2z";
const CALLBACKS: &str = "M6 3 2 7l4 4M2 7h8a4 4 0 0 1 4 4v2";
const BLOCKED: &str = "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM4 4l8 8";
const NUMBERS: &str = "M6 2 4 14M12 2l-2 12M2 6h12M2 10h12";
const MONEY: &str = "M12 4a5 5 0 1 0 0 8M2 7h7M2 9h7";
const PEOPLE: &str = "M6 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM2 14a4 4 0 0 1 8 0M10 3a2.5 2.5 0 0 1 0 5M12 10a4 4 0 0 1 2 4";
const LOG: &str = "M3 3h10M3 6h10M3 9h7M3 12h7";
/// For a page without an icon of its own.
const OTHER: &str = "M8 7.9h.1";

/// The icon of a page in the menu.
pub(super) fn icon(path: &str) -> &'static str {
    let page = path.strip_prefix("/dashboard").unwrap_or(path);
    match page {
        "" | "/operator/traffic" => "M2 14V8M6 14V3M10 14V9M14 14V6",
        "/send" => "M14 2 7 9M14 2l-4 12-3-5-5-3z",
        "/bulk" => "M1 4h8M1 8h6M1 12h8M10 5l4 3-4 3",
        "/messages" | "/operator/messages" => MESSAGES,
        "/inbox" | "/operator/unclaimed" => INBOX,
        "/scheduled" => "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 5v3l2 2",
        "/templates" => "M2 2h12v4H2zM2 8h5v6H2zM9 8h5v6H9z",
        "/callbacks" | "/operator/hosts" => CALLBACKS,
        "/senders" => "M2 2h5l7 7-5 5-7-7zM5 5h.1",
        "/opt-outs" | "/operator/blocks" => BLOCKED,
        "/lookups" => "M7 2a5 5 0 1 0 0 10A5 5 0 0 0 7 2zM11 11l3 3",
        "/verify" | "/operator/verify" => "M2 3h12v10H2zM4 8h.1M8 8h.1M12 8h.1",
        "/numbers" | "/operator/numbers" => NUMBERS,
        "/rates" | "/operator/prices" => MONEY,
        "/statement" => "M4 2h6l3 3v9H4zM6 7h5M6 10h5",
        "/connect" => "M5 2v4M11 2v4M3 6h10v2a5 5 0 0 1-10 0zM8 13v2",
        "/settings/api" => "M6 4 2 8l4 4M10 4l4 4-4 4",
        "/settings/people" | "/operator/people" => PEOPLE,
        "/settings/notifications" => "M3 12h10l-1-2V7a4 4 0 0 0-8 0v3zM7 14h2",
        "/settings/security" => "M4 7h8v7H4zM6 7V5a2 2 0 0 1 4 0v2",
        "/accounts" => "M3 13V5l5-3 5 3v8zM6 13V9h4v4",
        "/settings/audit" | "/operator/audit" => LOG,
        "/operator/accounts" => "M2 5h12v9H2zM6 5V3h4v2",
        "/operator/smpp-users" => "M2 8h3M11 8h3M5 5h6v6H5zM7 2v3M9 11v3",
        "/operator/senders" => "M2 8l4 4 8-8",
        "/operator/carriers" => "M8 9v5M5 6a4 4 0 0 1 6 0M3 4a7 7 0 0 1 10 0",
        "/operator/routes" => "M3 3h4v4a3 3 0 0 0 3 3h3M11 8l2 2-2 2",
        "/operator/margin" => "M2 12l4-4 3 3 5-6M10 5h4v4",
        "/operator/reference" => "M2 3h5l1 1 1-1h5v10H9l-1 1-1-1H2zM8 4v10",
        "/operator/queues" => "M2 4h12M2 8h12M2 12h6",
        "/operator/nodes" => "M2 3h12v4H2zM2 9h12v4H2zM5 5h.1M5 11h.1",
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ACCOUNT, OPERATOR, SETTINGS};
    use super::*;

    #[test]
    fn every_page_of_the_menu_has_an_icon() {
        for (label, path) in ACCOUNT.iter().chain(&SETTINGS).chain(&OPERATOR) {
            assert_ne!(icon(path), OTHER, "{label}");
        }
    }
}
