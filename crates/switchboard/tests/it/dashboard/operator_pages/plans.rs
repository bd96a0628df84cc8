//! Carriers and routes that operators change in the browser.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testkit::Backend;
use testkit::http::Response;

use super::{operator, post};
use crate::dashboard::asking::age_sessions;
use crate::http_carrier::{
    self, SECRET, callback, carrier, path, provider, start, taken, wait_for_request,
};
use crate::people::PASSWORD;
use crate::people::browser::Browser;
use crate::rest::service::{Service, wait_for};

const CARRIERS: &str = "/dashboard/operator/carriers";
const ROUTE: &str = "/dashboard/operator/routes/edit";

/// The text of a page, which never has a secret.
fn page(response: &Response, status: u16) -> String {
    let text = response.text();
    assert_eq!(response.status, status, "{text}");
    assert!(!text.contains(SECRET), "{text}");
    text
}

fn check_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// The sources of all carriers, by name.
fn sources(service: &Service) -> Vec<(String, Value)> {
    let list = service.server.cli_json(&["carrier", "list", "--json"]);
    let list = list.as_array().expect("a list").iter();
    let mut sources: Vec<(String, Value)> = list
        .map(|one| {
            let name = one["name"].as_str().expect("a name");
            (name.to_owned(), one["source"].clone())
        })
        .collect();
    sources.sort_by(|one, other| one.0.cmp(&other.0));
    sources
}

fn check_file_carriers_stay(browser: &mut Browser<'_>) {
    let list = page(&browser.get(CARRIERS), 200);
    check_contains(&list, &["<td>file</td>", "Add a carrier"]);
    let shown = page(&browser.get(&format!("{CARRIERS}/edit?name=alpha")), 200);
    check_contains(&shown, &["comes from the configuration file", "(hidden)"]);
    assert!(!shown.contains("<textarea"), "{shown}");
    let smpp = "kind = \"smpp\"\naddress = \"127.0.0.1:1\"\nsystem_id = \"x\"";
    let fields = [("name", "alpha"), ("description", smpp), ("sure", "yes")];
    for form in ["new", "edit", "remove"] {
        let refused = post(browser, &format!("{CARRIERS}/{form}"), &fields);
        page(&refused, 422);
    }
}

/// What is typed stays in the form, except secrets.
fn check_wrong_descriptions(browser: &mut Browser<'_>) {
    let wrong = format!(
        "kind = \"smpp\"\naddress = \"127.0.0.1:1\"\npassword = \"{SECRET}\"\nwindw = 3\nsystem_id = \"x\""
    );
    for (name, description, parts) in [
        ("beta", wrong.as_str(), ["Line 4: ", "windw = 3"]),
        (
            "beta",
            "kind = \"smpp\"\nwindow = 0",
            ["address", "window = 0"],
        ),
        (
            "beta",
            "kind = \"smpp\"\n\nx =",
            ["Line 3: ", "not valid TOML"],
        ),
        ("a b", "kind = \"smpp\"", ["must be 1 to 32 letters", "a b"]),
    ] {
        let fields = [
            ("name", name),
            ("description", description),
            ("secret_name", "password"),
            ("secret_value", SECRET),
        ];
        let refused = post(browser, &format!("{CARRIERS}/new"), &fields);
        check_contains(&page(&refused, 422), &parts);
    }
    let fields = [
        ("name", "beta"),
        ("description", "kind = \"smpp\""),
        ("secret_name", "password"),
        ("secret_value", "file:/etc/hostname"),
    ];
    let refused = post(browser, &format!("{CARRIERS}/new"), &fields);
    check_contains(&page(&refused, 422), &["enter the secret itself"]);
}

#[test]
fn operators_add_change_test_and_restore_carriers_and_routes() {
    let network = provider(|_| taken());
    let service = start(
        Backend::Sqlite,
        carrier("alpha", &network.url("/send"), "", ""),
    );
    let mut browser = operator(&service);
    check_file_carriers_stay(&mut browser);
    check_wrong_descriptions(&mut browser);
    assert_eq!(sources(&service), [("alpha".to_owned(), json!("file"))]);

    // A preset needs only credentials.
    let shown = page(&browser.get(&format!("{CARRIERS}/new?start=twilio")), 200);
    check_contains(&shown, &["secret.account_sid", "StatusCallback"]);
    let description = format!(
        "kind = \"http\"\npreset = \"twilio\"\nbase_url = \"{}\"\n",
        network.url("")
    );
    let stored = browser.submit(&[
        ("name", "twilio"),
        ("description", &description),
        ("secret_value", "AC1"),
        ("secret_value", SECRET),
    ]);
    page(&stored, 303);
    check_contains(
        &page(&browser.follow(&stored), 200),
        &["Stored.", "<td>database</td>"],
    );
    let both = [
        ("alpha".to_owned(), json!("file")),
        ("twilio".to_owned(), json!("database")),
    ];
    assert_eq!(sources(&service), both);

    // A change asks for the password, and keeps the secrets that are not typed.
    age_sessions(&service);
    let edit = format!("{CARRIERS}/edit?name=twilio");
    let shown = page(&browser.get(&edit), 200);
    check_contains(&shown, &["Current password", "preset = &#34;twilio&#34;"]);
    let changed = format!("window = 7\n{description}");
    let fields = [
        ("description", changed.as_str()),
        ("secret_value", "AC2"),
        ("secret_value", ""),
    ];
    let refused = page(&browser.submit(&fields), 422);
    check_contains(&refused, &["Enter your password", "window = 7"]);
    let mut proved = fields.to_vec();
    proved.push(("current_password", PASSWORD));
    page(&browser.submit(&proved), 303);
    let output = service.server.cli(&["carrier", "show", "twilio"]);
    check_contains(&String::from_utf8_lossy(&output.stdout), &["window = 7"]);
    let sent = [("name", "twilio"), ("to", "+37120000001"), ("from", "Acme")];
    page(&post(&mut browser, &format!("{CARRIERS}/test"), &sent), 303);
    let request = wait_for_request(&network, 1);
    let basic = format!("Basic {}", STANDARD.encode(format!("AC2:{SECRET}")));
    assert_eq!(request.header("authorization"), Some(basic.as_str()));

    check_a_test_message(&service, &mut browser, &network);
    check_routes_and_history(&service, &mut browser);
}

fn check_a_test_message(
    service: &Service,
    browser: &mut Browser<'_>,
    network: &testkit::receiver::Receiver,
) {
    let test = format!("{CARRIERS}/test");
    let wrong = [("name", "alpha"), ("to", "12")];
    page(&post(browser, &test, &wrong), 422);
    let sent = post(browser, &test, &[("name", "alpha"), ("to", "+37120000001")]);
    page(&sent, 303);
    let waiting = page(&browser.follow(&sent), 200);
    check_contains(&waiting, &["Accepted after", "Waiting for the report"]);
    let url = callback(&wait_for_request(network, 2));
    let report = json!({ "status": "delivered" });
    let answered = http_carrier::post(service, path(service, &url), &report);
    assert_eq!(answered.status, 200);
    wait_for("the report", || {
        let shown = page(&browser.follow(&sent), 200);
        shown.contains("<strong>Delivered</strong>").then_some(())
    });
}

fn check_routes_and_history(service: &Service, browser: &mut Browser<'_>) {
    let route = |carriers| {
        [
            ("name", "latvia"),
            ("country", "LV"),
            ("carriers", carriers),
        ]
    };
    let refused = page(&post(browser, ROUTE, &route("nobody")), 422);
    check_contains(&refused, &["there is no carrier", "value=\"LV\""]);
    page(&post(browser, ROUTE, &route("twilio, alpha")), 303);
    let routes = service.server.cli_json(&["route", "list", "--json"]);
    assert_eq!(routes[0]["name"], "latvia");
    assert_eq!(routes[0]["carriers"], json!(["twilio", "alpha"]));
    let shown = page(&browser.get("/dashboard/operator/routes"), 200);
    check_contains(&shown, &["latvia", "<td>database</td>", "twilio"]);

    // A removal is asked about, and a carrier of a route stays.
    let remove = format!("{CARRIERS}/remove");
    let asked = page(&post(browser, &remove, &[("name", "twilio")]), 200);
    check_contains(&asked, &["Remove the carrier twilio?"]);
    page(&browser.submit(&[]), 422);
    let history = page(&browser.get(&format!("{CARRIERS}/history")), 200);
    check_contains(&history, &["route.set route latvia", "op@example.com"]);
    for (to, carriers) in [("0", 1), ("2", 2)] {
        let undo = format!("{CARRIERS}/undo");
        page(&post(browser, &undo, &[("to", to), ("sure", "yes")]), 303);
        wait_for("the carriers of that version", || {
            (sources(service).len() == carriers).then_some(())
        });
    }
    let removed = [("name", "twilio"), ("sure", "yes")];
    page(&post(browser, &remove, &removed), 303);
    let audit = service.server.cli(&["audit"]);
    let audit = String::from_utf8_lossy(&audit.stdout);
    check_contains(&audit, &["secret.auth_token", "carrier.undo"]);
    for text in [&*audit, &service.server.output()] {
        assert!(!text.contains(SECRET), "{text}");
    }
}
