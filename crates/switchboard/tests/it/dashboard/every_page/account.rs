//! Forms of an account: what they refuse, what they ask before, and what they say afterwards.

use super::site::Viewer::Member;
use super::site::{SentForm, Site};

const SECURITY: &str = "/dashboard/settings/security";

const FORMS: &[SentForm] = &[
    (
        "send-refused",
        "/dashboard/send",
        "",
        &[
            ("from", "a name that is too long"),
            ("to", "12"),
            ("message", "x"),
            ("scheduled", "soon"),
            ("dlrUrl", "ftp://example.com/"),
            ("once", "1"),
        ],
        422,
        "Send a message",
    ),
    (
        "template-saved",
        "/dashboard/templates",
        "",
        &[
            ("name", "Order"),
            ("text", "Hello {name}, your order {order} is ready."),
        ],
        200,
        "The template was saved.",
    ),
    (
        "bulk-refused",
        "/dashboard/bulk",
        "",
        &[
            ("from", "Acme"),
            ("message", "Hello {name}"),
            ("csv", "to,name\n12,Ann\n+37120000001,Bob\nx,Carl\n"),
            ("once", "1"),
        ],
        422,
        "Line 4: ",
    ),
    (
        "scheduled-cancelled",
        "/dashboard/scheduled/{scheduled}",
        "",
        &[],
        200,
        "Cancelled. It will not be sent",
    ),
    (
        "scheduled-too-late",
        "/dashboard/send",
        "/dashboard/scheduled/{scheduled}",
        &[],
        409,
        "was not cancelled",
    ),
    (
        "sender-withdraw",
        "/dashboard/senders/{pending}",
        "/dashboard/senders/{pending}/withdraw",
        &[],
        200,
        "Withdraw the sender Acme Shop?",
    ),
    (
        "sender-wrong-pin",
        "/dashboard/senders/{sender}",
        "/dashboard/senders/{sender}/confirm",
        &[("code", "12")],
        422,
        "PIN",
    ),
    (
        "callbacks-replayed",
        "/dashboard/callbacks/replay?from=2020-01-01T00%3A00",
        "/dashboard/callbacks/replay",
        &[("from", "2020-01-01T00:00")],
        200,
        "Sent again",
    ),
    (
        "opt-out-added",
        "/dashboard/opt-outs",
        "",
        &[("number", "+37120000055"), ("sender", "")],
        200,
        "+37120000055",
    ),
    (
        "opt-outs-import-refused",
        "/dashboard/opt-outs",
        "/dashboard/opt-outs/import",
        &[("csv", "number,sender\n12,\n")],
        400,
        "Nothing was imported.",
    ),
    (
        "numbers-corrected",
        "/dashboard/numbers",
        "",
        &[("numbers", "29111111\nnonsense"), ("country", "LV")],
        200,
        "+37129111111",
    ),
    (
        "consent-refused",
        "{consent}",
        "",
        &[("decision", "approve")],
        422,
        "Nothing is ticked.",
    ),
    (
        "form-out-of-date",
        "/dashboard/templates",
        "",
        &[("form_token", "of another page"), ("name", "x")],
        403,
        "This form is out of date",
    ),
    (
        "form-incomplete",
        SECURITY,
        "/dashboard/settings/security/second-factor",
        &[("action", "something else")],
        400,
        "The form was incomplete",
    ),
];

pub(super) async fn check(site: &mut Site) {
    for form in FORMS {
        site.check_form(Member, form).await;
    }
    let refunded = "/dashboard/messages/{refused}";
    site.wait_for(Member, refunded, "Refunded: ").await;
    for (name, path) in [
        ("message-refunded", refunded),
        ("message-cancelled", "/dashboard/messages/{scheduled}"),
        ("template", "/dashboard/templates?name=Order"),
        ("send-template", "/dashboard/send?template=Order"),
    ] {
        site.check_page(name, Member, path).await;
    }
    check_bulk(site).await;
}

/// A file with merge fields is uploaded, checked, sent and followed.
async fn check_bulk(site: &mut Site) {
    let file = site.service.server.data_dir().join("rows.csv");
    let rows = "to,name,order\n+37120000031,Ann,1001\n+37120000032,Bob,1002\n";
    std::fs::write(&file, rows).expect("a file");
    let page = site.page(Member);
    page.open(&site.url("/dashboard/bulk?template=Order")).await;
    page.fill("From", "Acme").await;
    page.attach("File", &file).await;
    page.wait_until("document.getElementById('csv').value.includes('Bob')")
        .await;
    page.click("Check and show the price").await;
    let text = "Hello Ann, your order 1001 is ready.";
    page.wait_for(text).await;
    site.check_shown("bulk-check", Member, 200, text).await;
    let page = site.page(Member);
    page.click("Send 2 messages").await;
    page.wait_for("2 of 2").await;
    site.check_shown("bulk-progress", Member, 200, "2 of 2")
        .await;
}
