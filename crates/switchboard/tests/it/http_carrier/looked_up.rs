//! Twilio, a phone and a provider of lookups together: a message goes by the network that a lookup found.

use serde_json::{Value, json};
use testkit::receiver::{ReceivedRequest, Receiver, Reply};
use testkit::{Backend, TEST_TIMEOUT, temp_dir};

use super::lookups::look_up;
use super::presets::{post_event, post_form};
use super::{
    SECRET, add_number, check_nothing_secret_is_logged, inbound_path, path, provider, send, start,
    wait_for_request,
};
use crate::chain::wait_for_reported_states;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

on_both_backends!(a_message_goes_by_the_network_that_a_lookup_found);

/// Of the network 24701, as its digits tell.
const TO: &str = "+37129100000";
const OWN: &str = "+37120000009";

const PRICES: &str = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate
Latvia,LV,LMT,LMT,247,01,0.05
Latvia,LV,Tele2,Tele2,247,02,0.09
Latvia,LV,All,All,247,,0.20
";

/// The next messages for the network 24702 go to the phone, by a route that follows ported numbers.
const ROUTES: &str = r#"
[[route]]
channel = "hlr"
carriers = ["lookups"]
[[route]]
network = "24702"
ported_numbers = true
carriers = ["phone"]
[[route]]
carriers = ["twilio"]
"#;

fn preset(name: &str, preset: &str, server: &Receiver, secrets: &str) -> String {
    let url = server.url("");
    format!(
        "[[carrier]]\nname = \"{name}\"\nkind = \"http\"\npreset = \"{preset}\"\nbase_url = \"{url}\"\n\
         [carrier.secret]\n{secrets}\n"
    )
}

/// The presets of lookups: the answer that the number was ported, and the secrets.
fn lookup_presets() -> [(&'static str, Value, String); 2] {
    let found = json!({
        "mccMnc": "24702", "ported": true, "status": { "groupName": "DELIVERED" },
        "error": { "name": "NO_ERROR" },
    });
    [
        (
            "infobip-lookup",
            json!({ "results": [found] }),
            format!("api_key = \"{SECRET}\""),
        ),
        (
            "neutrino",
            json!({ "hlr-status": "ok", "mcc": "247", "mnc": "02", "is-ported": true }),
            format!("user_id = \"me\"\napi_key = \"{SECRET}\""),
        ),
    ]
}

fn import_prices(service: &Service) {
    let folder = temp_dir("rates").expect("a temporary folder");
    let file = folder.path().join("list.csv");
    std::fs::write(&file, PRICES).expect("the list is written");
    let file = file.to_str().expect("UTF-8");
    let imported = service.server.cli(&["rates", "import", file]);
    assert!(imported.status.success(), "{imported:?}");
    wait_for("the prices", || (price(service) == "0.05").then_some(()));
}

fn price(service: &Service) -> Value {
    let body = json!({ "to": TO, "from": OWN, "message": "Hi" }).to_string();
    let response = service.call_as(&service.token, "POST", "/sms/cost", body.as_bytes());
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()[0]["totalPrice"].clone()
}

fn field(request: &ReceivedRequest, name: &str) -> String {
    let mut form = url::form_urlencoded::parse(&request.body);
    let found = form.find(|(field, _)| field == name);
    found.expect("the field").1.into_owned()
}

/// Waits until this many texts of handsets have arrived, and returns the last.
fn wait_for_text(inbox: &Receiver, count: usize) -> Value {
    assert!(inbox.wait_for(count, TEST_TIMEOUT));
    inbox.received()[count - 1].json()["message"].clone()
}

fn a_message_goes_by_the_network_that_a_lookup_found(backend: Backend) {
    for (name, answer, secrets) in lookup_presets() {
        let twilio = provider(|_| Reply::answer(201, r#"{"sid":"SM1","status":"queued"}"#));
        let phone = provider(|_| Reply::answer(202, r#"{"id":"1","state":"Pending"}"#));
        let lookups = provider(move |_| Reply::answer(200, answer.to_string()));
        let tokens = format!("account_sid = \"AC0123\"\nauth_token = \"{SECRET}\"");
        let app = format!("username = \"me\"\npassword = \"x\"\nsigning_key = \"{SECRET}\"");
        let config = [
            preset("twilio", "twilio", &twilio, &tokens),
            preset("phone", "android-sms-gateway", &phone, &app),
            preset("lookups", name, &lookups, &secrets),
            ROUTES.to_owned(),
        ];
        let service = start(backend, config.concat());
        import_prices(&service);
        let (receiver, inbox) = (Receiver::start(), Receiver::start());
        add_number(&service, OWN, &inbox);

        // By its digits the number belongs to the network of the last route.
        let fields = json!({ "to": TO, "from": OWN });
        let by_digits = send(&service, &receiver, &fields);
        let request = wait_for_request(&twilio, 1);
        let url = field(&request, "StatusCallback");
        let report = [("MessageSid", "SM1"), ("MessageStatus", "delivered")];
        let address = path(&service, &url);
        let forged = post_form(&service, "wrong", address, &report);
        assert_eq!(forged.status, 403, "{name}");
        let taken = post_form(&service, SECRET, address, &report);
        assert_eq!(taken.status, 200, "{name}");
        let mut ended = vec![(by_digits, 1, 0)];
        assert_eq!(wait_for_reported_states(&receiver, 1), ended, "{name}");
        let text = [
            ("MessageSid", "SM2"),
            ("From", TO),
            ("To", OWN),
            ("Body", "By Twilio"),
        ];
        let address = inbound_path(&service, "twilio");
        let stored = post_form(&service, SECRET, &address, &text);
        assert_eq!(stored.status, 204, "{name}");
        assert_eq!(wait_for_text(&inbox, 1), "By Twilio", "{name}");

        let found = look_up(&service, TO);
        let network = (&found["mcc"], &found["mnc"]);
        assert_eq!(network, (&json!("247"), &json!("02")), "{name}: {found}");
        assert!(found["ported"].is_array(), "{name}: {found}");

        // The next message is priced and routed by the network that it was ported to.
        assert_eq!(price(&service), "0.09", "{name}");
        let before = service.balance();
        let ported = send(&service, &receiver, &fields);
        assert_eq!(wait_for_request(&phone, 1).json()["id"], ported, "{name}");
        assert_eq!(twilio.count(), 1, "{name}");
        let charged = (before.as_str(), service.balance());
        // A message for 0.05 and a lookup were charged before.
        assert_eq!(charged, ("99.945", "99.855".to_owned()), "{name}");
        let address = inbound_path(&service, "phone");
        let event = |event: &str| json!({ "event": event, "id": event, "payload": { "messageId": ported } });
        let forged = post_event(&service, "wrong", &address, &event("sms:failed"));
        assert_eq!(forged.status, 403, "{name}");
        let delivered = post_event(&service, SECRET, &address, &event("sms:delivered"));
        assert_eq!(delivered.status, 200, "{name}");
        ended.push((ported.clone(), 1, 0));
        ended.sort();
        assert_eq!(wait_for_reported_states(&receiver, 2), ended, "{name}");
        let text = json!({
            "event": "sms:received", "id": "Ey6ECgOkVVFjz3CL48B8C",
            "payload": { "messageId": "abc", "message": "By phone", "sender": TO, "recipient": OWN },
        });
        assert_eq!(
            post_event(&service, SECRET, &address, &text).status,
            204,
            "{name}"
        );
        assert_eq!(wait_for_text(&inbox, 2), "By phone", "{name}");
        service.check_health();
        check_nothing_secret_is_logged(&service);
    }
}
