//! The pages *Opt-outs* and *Block list*.

use testkit::Backend;

use super::{admin, send};
use crate::people::joined;
use crate::rest::on_both_backends;
use crate::rest::service::Service;

on_both_backends!(
    an_account_changes_its_opt_outs,
    an_operator_changes_the_block_list,
);

const HERE: &str = "/dashboard/opt-outs";

fn an_account_changes_its_opt_outs(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = admin(&service);
    assert!(browser.get(HERE).text().contains("Nobody has opted out"));
    for (number, sender, status) in [
        ("+37120000001", "", 303),
        ("+37120000001", "Acme", 303),
        ("nobody", "", 400),
        ("+37120000001", "a sender that is too long", 400),
    ] {
        let fields = [("number", number), ("sender", sender)];
        let answer = send(&mut browser, HERE, &fields);
        assert_eq!(
            answer.status,
            status,
            "{number} {sender}: {}",
            answer.text()
        );
    }
    let csv = "number,sender\n+37120000002,\n+37120000001,Acme\n";
    let import = format!("{HERE}/import");
    let wrong = send(&mut browser, &import, &[("csv", "number\nnobody\n")]);
    assert_eq!(wrong.status, 400);
    let text = wrong.text();
    assert!(
        text.contains("Line 2") && text.contains("Nothing was imported"),
        "{text}"
    );
    let imported = send(&mut browser, &import, &[("csv", csv)]);
    let location = imported.header("location").expect("a page");
    assert!(
        location.starts_with("/dashboard/opt-outs?said=imported-1."),
        "{location}"
    );

    let exported = browser.get("/dashboard/opt-outs.csv").text();
    let lines: Vec<&str> = exported.lines().collect();
    assert_eq!(lines[0], "number,sender,since,via");
    assert_eq!(lines.len(), 4, "{exported}");
    assert!(lines[1].starts_with("+37120000001,,"), "{exported}");
    assert!(lines[1].ends_with(",dashboard"), "{exported}");
    assert!(lines[2].starts_with("+37120000001,Acme,"), "{exported}");
    assert!(lines[3].ends_with(",import"), "{exported}");

    let remove = format!("{HERE}/remove");
    let fields = [
        ("number", "+37120000001"),
        ("sender", "Acme"),
        ("sure", "yes"),
    ];
    let removed = send(&mut browser, &remove, &fields);
    assert_eq!(removed.status, 303, "{}", removed.text());
    let listed = service.get("/optOuts").json();
    let listed: Vec<_> = listed.as_array().expect("a list").iter().collect();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert_eq!(listed[0]["sender"], serde_json::Value::Null);
    // Another account has its own list.
    service.create_account("other");
    let more = ["--role", "member", "--account", "other"];
    let mut other = joined(&service, "bob@example.com", &more);
    assert!(other.get(HERE).text().contains("Nobody has opted out"));
}

fn an_operator_changes_the_block_list(backend: Backend) {
    let service = Service::start(backend);
    let more = ["--role", "operator", "--account", "main"];
    let mut browser = joined(&service, "operator@example.com", &more);
    let here = "/dashboard/operator/blocks";
    assert!(browser.get(here).text().contains("Nothing is blocked"));
    for (kind, value, status) in [
        ("word", "Jackpot", 303),
        ("prefix", "+3719", 303),
        ("word", "two words", 400),
        ("number", "12", 400),
        ("colour", "red", 400),
    ] {
        let fields = [("kind", kind), ("value", value)];
        let answer = send(&mut browser, here, &fields);
        assert_eq!(answer.status, status, "{kind} {value}: {}", answer.text());
    }
    let page = browser.get(here).text();
    assert!(page.contains("JACKPOT") && page.contains("+3719"), "{page}");
    let fields = [("kind", "prefix"), ("value", "+3719"), ("sure", "yes")];
    let removed = send(&mut browser, &format!("{here}/remove"), &fields);
    assert_eq!(removed.status, 303, "{}", removed.text());
    let listed = service.server.cli_json(&["block", "list", "--json"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed[0]["value"], "JACKPOT");
}
