//! Carriers and routes in the database: their forms, a test message with its steps, and the history.

use serde_json::{Value, json};
use testkit::receiver::Receiver;

use super::site::Viewer::Operator;
use super::site::{SentForm, Site};
use crate::http_carrier::{path, post, provider, taken};
use crate::rest::service::wait_for;

const NEW: &str = "/dashboard/operator/carriers/new";
const TEST: &str = "/dashboard/operator/carriers/test";
const ROUTE: &str = "/dashboard/operator/routes/edit";
/// The recipient of the test message.
const RECIPIENT: &str = "+37120000077";

const FORMS: &[SentForm] = &[
    (
        "operator-carrier-refused",
        "/dashboard/operator/carriers/new?start=smpp",
        NEW,
        &[
            ("start", "smpp"),
            ("name", "a b"),
            ("description", "kind = \"smpp\"\nwindw = 3\n"),
        ],
        422,
        "Correct this and try again:",
    ),
    (
        "operator-route-added",
        ROUTE,
        "",
        &[
            ("name", "latvia"),
            ("country", "LV"),
            ("carriers", "gamma, alpha"),
        ],
        200,
        "Stored.",
    ),
    (
        "operator-carrier-remove",
        "/dashboard/operator/carriers/edit?name=gamma",
        "/dashboard/operator/carriers/remove",
        &[("name", "gamma")],
        200,
        "Remove the carrier gamma?",
    ),
    (
        "operator-carrier-in-use",
        "/dashboard/operator/carriers/edit?name=gamma",
        "/dashboard/operator/carriers/remove",
        &[("name", "gamma"), ("sure", "yes")],
        422,
        "This does not work",
    ),
    (
        "operator-carriers-undo",
        "/dashboard/operator/carriers/history",
        "/dashboard/operator/carriers/undo",
        &[("to", "1")],
        200,
        "Restore version 1?",
    ),
];

pub(super) async fn check(site: &mut Site) {
    let network = provider(|_| taken());
    add_carriers(site, &network).await;
    for form in FORMS {
        site.check_form(Operator, form).await;
    }
    for (name, path) in [
        (
            "operator-carrier-smpp",
            "/dashboard/operator/carriers/edit?name=alpha",
        ),
        (
            "operator-carrier-upstream",
            "/dashboard/operator/carriers/edit?name=beta",
        ),
        (
            "operator-carrier-http",
            "/dashboard/operator/carriers/edit?name=gamma",
        ),
        (
            "operator-carrier-of-preset",
            "/dashboard/operator/carriers/edit?name=delta",
        ),
        (
            "operator-carrier-test",
            "/dashboard/operator/carriers/test?name=gamma",
        ),
        (
            "operator-route-stored",
            "/dashboard/operator/routes/edit?name=latvia",
        ),
        (
            "operator-carriers-changes",
            "/dashboard/operator/carriers/history",
        ),
    ] {
        site.check_page(name, Operator, path).await;
    }
    check_test(site, &network).await;
}

/// A carrier of each kind. Only `gamma` has somebody who answers.
async fn add_carriers(site: &mut Site, network: &Receiver) {
    let preset = format!(
        "kind = \"http\"\npreset = \"twilio\"\nbase_url = \"{}\"\n",
        network.url("")
    );
    let http = http_description(&network.url("/send"));
    let smpp = "kind = \"smpp\"\naddress = \"127.0.0.1:1\"\nsystem_id = \"acme\"\n";
    let upstream = "kind = \"upstream\"\nurl = \"http://127.0.0.1:1\"\n";
    for (name, description, secrets) in [
        ("alpha", smpp, &["password"][..]),
        ("beta", upstream, &["token"]),
        ("gamma", http.as_str(), &["secret.key"]),
        (
            "delta",
            preset.as_str(),
            &["secret.account_sid", "secret.auth_token"],
        ),
    ] {
        let mut fields = vec![("name", name), ("description", description)];
        for secret in secrets {
            fields.extend([("secret_name", *secret), ("secret_value", "s3cret")]);
        }
        let form = "/dashboard/operator/carriers/new?start=http";
        site.send(Operator, form, NEW, &fields).await;
        site.page(Operator).wait_for("Stored.").await;
    }
    site.check_shown("operator-carriers-stored", Operator, 200, "delta")
        .await;
}

fn http_description(url: &str) -> String {
    format!(
        r#"kind = "http"
[request]
url = "{url}"
headers = {{ Authorization = "Bearer {{{{ secret.key }}}}" }}
json = {{ to = "{{{{ to }}}}", from = "{{{{ from }}}}", text = "{{{{ text }}}}", callback = "{{{{ report_url }}}}" }}
[response]
id = "/messages/0/id"
[report]
state = "/status"
delivered = ["delivered"]
failed = ["failed"]
"#
    )
}

/// A test message is followed to its report.
async fn check_test(site: &mut Site, network: &Receiver) {
    let form = "/dashboard/operator/carriers/test?name=gamma";
    let fields = [("name", "gamma"), ("to", RECIPIENT), ("from", "Acme")];
    site.send(Operator, form, TEST, &fields).await;
    let waiting = "Waiting for the report";
    site.check_shown("operator-carrier-test-waiting", Operator, 200, waiting)
        .await;
    let callback = wait_for("the test message", || {
        let bodies = network.received().into_iter();
        let mut bodies = bodies.filter_map(|one| serde_json::from_slice::<Value>(&one.body).ok());
        let sent = bodies.find(|body| body["to"] == RECIPIENT)?;
        sent["callback"].as_str().map(str::to_owned)
    });
    let report = json!({ "status": "delivered" });
    let answered = post(&site.service, path(&site.service, &callback), &report);
    assert_eq!(answered.status, 200, "{}", answered.text());
    site.page(Operator).wait_for("Delivered").await;
    site.check_shown("operator-carrier-tested", Operator, 200, "Delivered")
        .await;
}
