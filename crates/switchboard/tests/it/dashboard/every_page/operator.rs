//! Forms of operators and admins: what they refuse, what they ask before, and what they say afterwards.

use super::site::Viewer::Operator;
use super::site::{SentForm, Site};
use crate::people::PASSWORD;

const ACCOUNT: &str = "/dashboard/operator/accounts/1";
const CREDIT: &str = "/dashboard/operator/accounts/1/credit";
const HANDSET: &str = "/dashboard/operator/carriers/handset";
const NUMBERS: &str = "/dashboard/operator/numbers";
const PASSWORD_PAGE: &str = "/dashboard/password";
const PEOPLE: &str = "/dashboard/operator/people";
const PRICES: &str = "/dashboard/operator/prices";
const REQUESTS: &str = "/dashboard/settings/api/tokens/1/requests";
const SMPP_USERS: &str = "/dashboard/operator/smpp-users";
const PRICE_LIST: &str =
    "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\n,,Default,Default,,,0.05\n";
const WRONG_PRICE_LIST: &str = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate
,,Default,Default,,,0.05
Nowhere,XX,All,All,,,0.01
Latvia,LV,All,All,,,dear
";

/// In this order: those at the start need a password that was entered within the last minutes.
const FORMS: &[SentForm] = &[
    (
        "password-refused",
        PASSWORD_PAGE,
        "",
        &[
            ("email", "nobody"),
            ("password", "short"),
            ("repeated", "other"),
        ],
        422,
        "Write it like ann@example.com.",
    ),
    (
        "password-saved",
        PASSWORD_PAGE,
        "",
        &[
            ("email", "op@example.com"),
            ("password", PASSWORD),
            ("repeated", PASSWORD),
        ],
        200,
        "Your password was saved.",
    ),
    (
        "operator-people-invited",
        PEOPLE,
        "",
        &[
            ("action", "invite"),
            ("email", "carl@example.com"),
            ("role", "member"),
            ("account", "main"),
        ],
        200,
        "A link for carl@example.com.",
    ),
    (
        "operator-smpp-user-created",
        SMPP_USERS,
        "",
        &[
            ("account", "main"),
            ("system_id", "acme"),
            ("max_binds", "4"),
        ],
        200,
        "Copy the password now.",
    ),
    (
        "operator-people-remove",
        PEOPLE,
        "",
        &[
            ("action", "remove"),
            ("person", "1"),
            ("who", "ann@example.com"),
        ],
        200,
        "Remove ann@example.com?",
    ),
    (
        "operator-balance",
        ACCOUNT,
        CREDIT,
        &[("amount", "-1000000"), ("note", ""), ("once", "a key")],
        200,
        "Take 1,000,000.00 EUR from main?",
    ),
    (
        "operator-balance-refused",
        ACCOUNT,
        CREDIT,
        &[("amount", "much"), ("note", ""), ("once", "a key")],
        422,
        "Nothing was changed.",
    ),
    (
        "operator-prices-preview",
        PRICES,
        "",
        &[("channel", "sms"), ("account", ""), ("csv", PRICE_LIST)],
        200,
        "Changes in this list",
    ),
    (
        "operator-prices-refused",
        PRICES,
        "",
        &[
            ("channel", "sms"),
            ("account", ""),
            ("csv", WRONG_PRICE_LIST),
        ],
        422,
        "The list was not imported.",
    ),
    (
        "operator-prices-imported",
        PRICES,
        "",
        &[
            ("channel", "sms"),
            ("account", ""),
            ("csv", PRICE_LIST),
            ("seen", "0"),
        ],
        200,
        "The list was imported.",
    ),
    (
        "operator-sender-refused",
        "/dashboard/operator/senders",
        "/dashboard/operator/senders/{pending}",
        &[("decision", "reject"), ("reason", ""), ("view", "pending")],
        422,
        "Give a reason",
    ),
    (
        "operator-block-added",
        "/dashboard/operator/blocks",
        "",
        &[("kind", "word"), ("value", "jackpot")],
        200,
        "The rule was added.",
    ),
    (
        "operator-number-added",
        NUMBERS,
        "",
        &[("number", "1234"), ("account", "main"), ("keyword", "join")],
        200,
        "The number was added.",
    ),
    (
        "operator-handset-sent",
        HANDSET,
        "",
        &[
            ("from", "+37120000001"),
            ("to", "1234"),
            ("message", "Join us"),
        ],
        200,
        "The text was sent as message",
    ),
    (
        "token-refused",
        "/dashboard/settings/api/new",
        "",
        &[
            ("name", ""),
            ("networks", "here"),
            ("expires", "9"),
            ("current_password", PASSWORD),
        ],
        422,
        "Tick what the token may do",
    ),
    (
        "token-created",
        "/dashboard/settings/api/new",
        "",
        &[
            ("name", "backend"),
            ("route", "sms:send"),
            ("expires", ""),
            ("current_password", PASSWORD),
        ],
        200,
        "Copy it now.",
    ),
    (
        "signing-secret",
        "/dashboard/settings/api",
        "/dashboard/settings/api/secret",
        &[("current_password", PASSWORD)],
        200,
        "whsec_",
    ),
];

pub(super) async fn check(site: &mut Site) {
    for form in FORMS {
        site.check_form(Operator, form).await;
    }
    site.wait_for(Operator, REQUESTS, "POST /sms").await;
    for (name, path) in [
        ("settings-api-requests-listed", REQUESTS),
        ("operator-smpp-users-listed", SMPP_USERS),
    ] {
        site.check_page(name, Operator, path).await;
    }
    let (accounts, other) = ("/dashboard/accounts", "/dashboard/operator/accounts/2");
    let act = [("account", "2"), ("current_password", PASSWORD)];
    site.send(Operator, other, accounts, &act).await;
    site.check_answer(
        "accounts-acting",
        Operator,
        accounts,
        200,
        "You are acting for new.",
    )
    .await;
    site.send(Operator, accounts, "", &[("account", "")]).await;
}
