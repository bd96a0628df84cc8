//! Opt-outs and the block list, as callers see them.

use serde_json::{Value, json};
use testkit::{Backend, temp_dir};

use super::service::{Service, in_seconds, message, sms_with, tomorrow, wait_for, with_offset};

on_both_backends!(
    a_listed_recipient_ends_and_the_others_are_sent,
    a_scheduled_message_is_stopped_by_a_later_entry,
    an_entry_counts_for_its_sender_and_its_account,
    the_list_is_read_page_by_page,
    blocked_messages_end_at_once,
    a_file_is_imported,
);

const LISTED: &str = "+37120000002";

fn add(service: &Service, body: &Value) -> Value {
    let body = body.to_string();
    let response = service.call_as(&service.token, "POST", "/optOuts", body.as_bytes());
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

fn status(service: &Service, id: &str) -> Value {
    service.get(&format!("/sms/status/{id}")).json()
}

/// State and error of a message, once it has ended.
fn ended(service: &Service, id: &str) -> (String, u64) {
    let status = wait_for("the end of a message", || {
        let status = status(service, id);
        status["error"].is_u64().then_some(status)
    });
    let state = status["state"].as_str().expect("a state").to_owned();
    (state, status["error"].as_u64().expect("a code"))
}

/// Sends to a recipient and returns the code with which the message ends; 0 if it is delivered.
fn code(service: &Service, fields: &Value) -> u64 {
    let ids = service.accept(&sms_with(fields));
    ended(service, &ids[0]).1
}

/// A price for everything to Latvia, so that what is charged can be seen.
fn set_price(service: &Service) {
    let list =
        "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\nLatvia,LV,All,All,247,,0.10\n";
    let folder = temp_dir("rates").expect("a temporary folder");
    let file = folder.path().join("list.csv");
    std::fs::write(&file, list).expect("the list is written");
    run(service, &["rates", "import", file.to_str().expect("UTF-8")]);
    wait_for("the prices", || {
        let csv = service.get("/rates?format=csv").text();
        (csv.lines().count() == 2).then_some(())
    });
}

/// Runs a command that must succeed, and returns what it printed.
fn run(service: &Service, arguments: &[&str]) -> String {
    let output = service.server.cli(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn a_listed_recipient_ends_and_the_others_are_sent(backend: Backend) {
    let service = Service::start(backend);
    set_price(&service);
    let entry = add(&service, &json!({ "number": LISTED, "sender": null }));
    assert_eq!(
        (&entry["number"], &entry["sender"], &entry["via"]),
        (&json!(LISTED), &json!(null), &json!("api"))
    );
    let again = add(&service, &json!({ "number": "371 2000 0002" }));
    assert_eq!(again, entry, "an entry that is there is returned");

    let to = json!(["+37120000001", LISTED, "+37120000003"]);
    let ids = service.accept(&sms_with(&json!({ "to": to })));
    assert_eq!(ids.len(), 3);
    let refused = status(&service, &ids[1]);
    assert_eq!(
        (&refused["state"], &refused["status"], &refused["error"]),
        (&json!("failed"), &json!(2), &json!(27)),
        "it is final at once"
    );
    assert_eq!(service.balance(), "99.80", "two of three are charged");
    for id in [&ids[0], &ids[2]] {
        assert_eq!(ended(&service, id), ("delivered".to_owned(), 0));
    }
    let cost = service.call_as(
        &service.token,
        "POST",
        "/sms/cost",
        sms_with(&json!({ "to": LISTED })).to_string().as_bytes(),
    );
    assert_eq!(cost.json()[0]["totalPrice"], "0.00", "{}", cost.text());

    let removed = service.delete(&format!("/optOuts/{LISTED}"));
    assert_eq!(removed.json(), json!({ "number": LISTED, "sender": null }));
    assert_eq!(code(&service, &json!({ "to": LISTED })), 0, "it resumes");
    assert_eq!(service.balance(), "99.70");
    let again = service.delete(&format!("/optOuts/{LISTED}"));
    assert_eq!(again.status, 404);
    assert!(message(&again).contains("is not on the opt-out list"));
    let check = service.server.cli(&["account", "check"]);
    assert!(check.status.success(), "{check:?}");
}

fn a_scheduled_message_is_stopped_by_a_later_entry(backend: Backend) {
    let service = Service::start(backend);
    set_price(&service);
    // If the machine stalls, a message may be sent before the entry is there. Then the next one gets more time.
    let stopped = [3, 60, 300].into_iter().find_map(|lead| {
        let before = service.balance();
        let scheduled = with_offset(in_seconds(lead), 0);
        let ids = service.accept(&sms_with(&json!({ "to": LISTED, "scheduled": scheduled })));
        add(&service, &json!({ "number": LISTED }));
        if status(&service, &ids[0])["state"] == "scheduled" {
            return Some((ids[0].clone(), before));
        }
        service.delete(&format!("/optOuts/{LISTED}"));
        None
    });
    let (id, before) = stopped.expect("the entry is there in time");
    assert_ne!(service.balance(), before, "it was charged");
    assert_eq!(ended(&service, &id), ("failed".to_owned(), 27));
    assert_eq!(service.balance(), before, "it is refunded");

    // Listed before it was accepted: it does not wait for its time.
    let ids = service.accept(&sms_with(&json!({ "to": LISTED, "scheduled": tomorrow() })));
    assert_eq!(status(&service, &ids[0])["error"], 27);
    assert!(service.scheduled_as(&service.token).is_empty());
    assert_eq!(service.balance(), before);
}

fn an_entry_counts_for_its_sender_and_its_account(backend: Backend) {
    let service = Service::start(backend);
    let other = service.create_account("other");
    add(&service, &json!({ "number": LISTED, "sender": "Acme" }));
    assert_eq!(code(&service, &json!({ "to": LISTED, "from": "Acme" })), 27);
    assert_eq!(code(&service, &json!({ "to": LISTED, "from": "Beta" })), 0);
    let body = sms_with(&json!({ "to": LISTED })).to_string();
    let sent = service.call_as(&other, "POST", "/sms", body.as_bytes());
    let id = sent.json()[0].as_str().expect("an ID").to_owned();
    wait_for("the delivery of the other account's message", || {
        let status = service.call_as(&other, "GET", &format!("/sms/status/{id}"), b"");
        (status.json()["state"] == "delivered").then_some(())
    });
    let listed = service.call_as(&other, "GET", "/optOuts", b"");
    assert_eq!(listed.json(), json!([]));
    let taken = service.call_as(
        &other,
        "DELETE",
        &format!("/optOuts/{LISTED}?sender=Acme"),
        b"",
    );
    assert_eq!(taken.status, 404, "another account's entry");
    // A test message goes nowhere, so it is not refused.
    let tested = json!({ "to": LISTED, "from": "Acme", "testMode": "1" });
    assert_eq!(code(&service, &tested), 0);

    let all = service.delete(&format!("/optOuts/{LISTED}"));
    assert_eq!(all.status, 404, "the entry is only for one sender");
    let nobody = service.delete(&format!("/optOuts/{LISTED}?sender="));
    assert_eq!(nobody.status, 400, "{}", nobody.text());
    let one = service.delete(&format!("/optOuts/{LISTED}?sender=Acme"));
    assert_eq!(one.json(), json!({ "number": LISTED, "sender": "Acme" }));
    for (body, field) in [
        (json!({ "sender": "Acme" }), "'number'"),
        (json!({ "number": "12" }), "'number'"),
        (
            json!({ "number": LISTED, "sender": "a sender that is too long" }),
            "'sender'",
        ),
    ] {
        let body = body.to_string();
        let refused = service.call_as(&service.token, "POST", "/optOuts", body.as_bytes());
        assert_eq!(refused.status, 400, "{body}");
        assert!(message(&refused).contains(field), "{}", message(&refused));
    }
}

fn the_list_is_read_page_by_page(backend: Backend) {
    let service = Service::start(backend);
    let entries = [
        json!({ "number": "+37120000001", "sender": null }),
        json!({ "number": "+37120000001", "sender": "Acme Inc." }),
        json!({ "number": "+37120000002", "sender": "+37129999999" }),
    ];
    for entry in &entries {
        add(&service, entry);
    }
    let (mut path, mut read) = ("/optOuts?limit=1".to_owned(), Vec::new());
    loop {
        let page = service.get(&path);
        let list = page.json().as_array().expect("a list").clone();
        assert_eq!(list.len(), 1, "{}", page.text());
        read.extend(list);
        let Some(cursor) = page.header("x-next-cursor") else {
            break;
        };
        path = format!("/optOuts?limit=1&cursor={cursor}");
    }
    let key = |entry: &Value| json!({ "number": entry["number"], "sender": entry["sender"] });
    assert_eq!(read.iter().map(key).collect::<Vec<_>>(), entries);
    for wrong in ["limit=0", "limit=1001", "cursor=x", "limit=a"] {
        assert_eq!(
            service.get(&format!("/optOuts?{wrong}")).status,
            400,
            "{wrong}"
        );
    }
}

fn blocked_messages_end_at_once(backend: Backend) {
    let service = Service::start(backend);
    for (flag, value, fields) in [
        ("--number", LISTED, json!({ "to": LISTED })),
        ("--prefix", "+37167", json!({ "to": "+37167000000" })),
        ("--sender", "casino", json!({ "from": "Casino" })),
        (
            "--word",
            "jackpot",
            json!({ "message": "Your JACKPOT, now!" }),
        ),
    ] {
        assert_eq!(code(&service, &fields), 0, "{flag} before");
        run(&service, &["block", "add", flag, value]);
        wait_for("the block", || {
            (code(&service, &fields) == 21).then_some(())
        });
        assert_eq!(code(&service, &json!({})), 0, "{flag}: others are sent");
    }
    let listed = service.server.cli_json(&["block", "list", "--json"]);
    let listed = listed.as_array().expect("a list");
    let kinds: Vec<&str> = listed
        .iter()
        .filter_map(|rule| rule["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["number", "prefix", "sender", "word"]);
    assert_eq!(listed[0]["value"], LISTED);
    run(&service, &["block", "remove", "--word", "jackpot"]);
    wait_for("the removal", || {
        (code(&service, &json!({ "message": "jackpot" })) == 0).then_some(())
    });
    let again = service
        .server
        .cli(&["block", "remove", "--word", "jackpot"]);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
}

fn a_file_is_imported(backend: Backend) {
    let service = Service::start(backend);
    let folder = temp_dir("opt-outs").expect("a temporary folder");
    let file = folder.path().join("list.csv");
    let path = file.to_str().expect("UTF-8");
    let import = ["opt-out", "import", path, "--account", "main"];
    let good = format!("number,sender\n{LISTED},\n+37120000003,Acme\n");
    std::fs::write(&file, format!("{good}nobody,\n")).expect("written");
    let refused = service.server.cli(&import);
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("line 4") && stderr.contains("'nobody'"),
        "{stderr}"
    );
    assert_eq!(
        service.get("/optOuts").json(),
        json!([]),
        "nothing was changed"
    );

    std::fs::write(&file, good).expect("written");
    assert_eq!(
        run(&service, &import),
        "2 added, 0 were on the list already.\n"
    );
    assert_eq!(
        run(&service, &import),
        "0 added, 2 were on the list already.\n"
    );
    wait_for("the import", || {
        (code(&service, &json!({ "to": LISTED })) == 27).then_some(())
    });
    let list = ["opt-out", "list", "--account", "main", "--json"];
    let listed = service.server.cli_json(&list);
    assert_eq!(listed[0]["via"], "import");
    assert_eq!(listed[1]["sender"], "Acme");
    run(
        &service,
        &["opt-out", "remove", LISTED, "--account", "main"],
    );
    wait_for("the removal", || {
        (code(&service, &json!({ "to": LISTED })) == 0).then_some(())
    });
    run(
        &service,
        &[
            "opt-out",
            "add",
            LISTED,
            "--account",
            "main",
            "--sender",
            "Acme",
        ],
    );
    wait_for("the new entry", || {
        (code(&service, &json!({ "to": LISTED })) == 27).then_some(())
    });
    let log = service.server.cli_json(&["audit", "--json"]).to_string();
    for action in ["opt_out.import", "opt_out.remove", "opt_out.add"] {
        assert!(log.contains(action), "{action}: {log}");
    }
    assert!(!log.contains(&LISTED[1..]), "no whole number: {log}");
}
