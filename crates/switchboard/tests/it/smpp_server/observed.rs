//! What operators see of a user's sessions, and what a change of the user does to them.

use testkit::Backend;

use super::raw::{BIND_TRANSCEIVER, Client, DELIVER, RESPONSE, SUBMIT, Submit, UNBIND};
use super::{TO, create_user, start};
use crate::people::joined;
use crate::rest::service::wait_for;

const TEXT: &str = "a text that nobody may see";
const RTHROTTLED: u32 = 0x58;

#[test]
fn operators_see_sessions_and_change_their_user() {
    let (service, address) = start(Backend::Sqlite, "");
    let password = create_user(&service.server, "acme", &[]);
    let mut client = Client::bound(address, BIND_TRANSCEIVER, "acme", &password);
    let submit = Submit {
        receipt: 1,
        text: TEXT.as_bytes(),
        ..Submit::default()
    };
    let accepted = client.ask(SUBMIT, &submit.body());
    assert_eq!(accepted.status, 0, "{accepted:?}");
    let receipt = client.read().expect("a receipt");
    assert_eq!(receipt.command, DELIVER, "{receipt:?}");
    client.write(DELIVER | RESPONSE, 0, receipt.sequence, b"\0");
    let wrong = Submit {
        to: "123",
        ..submit
    };
    assert_ne!(client.ask(SUBMIT, &wrong.body()).status, 0);

    let mut browser = joined(&service, "op@example.com", &["--role", "operator"]);
    let page = "/dashboard/operator/smpp-users/1";
    let link = format!("/dashboard/operator/messages/{}\"", accepted.text());
    let parts = [
        "<code>ESME_RINVDSTADR</code> 1",
        "<code>127.0.0.1</code>",
        "0 from client, 0 to client",
        "<code>bind_transceiver</code>",
        "<code>submit_sm_resp</code>",
        "<code>deliver_sm_resp</code>",
        link.as_str(),
    ];
    let shown = wait_for("the session is shown", || {
        let text = browser.get(page).text();
        let is_whole = parts.iter().all(|part| text.contains(part));
        is_whole.then_some(text)
    });
    for secret in [TEXT, TO, password.as_str()] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }

    let set = |options: &[&str]| {
        let arguments = [&["smpp-user", "set", "acme"], options].concat();
        assert!(service.server.cli(&arguments).status.success());
    };
    set(&["--max-per-second", "1"]);
    wait_for("the session has the new limit", || {
        let answer = client.ask(SUBMIT, &Submit::default().body());
        (answer.status == RTHROTTLED).then_some(())
    });
    set(&["--allow-ip", "192.0.2.1"]);
    let unbind = client.read().expect("a PDU");
    assert_eq!(unbind.command, UNBIND, "{unbind:?}");
    client.write(UNBIND | RESPONSE, 0, unbind.sequence, b"");
    assert_eq!(client.read(), None);
    wait_for("the session vanishes", || {
        let text = browser.get(page).text();
        text.contains("No session is bound").then_some(())
    });
}
