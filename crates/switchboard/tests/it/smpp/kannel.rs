//! Texts from handsets, delivered by the SMSC that comes with the tests of Kannel.

use std::net::{Ipv4Addr, TcpListener};

use testkit::Backend;
use testkit::kannel_smsc::KannelSmsc;
use testkit::receiver::Receiver;

use super::{carrier, start};
use crate::rest::service::wait_for;

const TEXTS: u32 = 50;

/// One after the other, because only one such SMSC can run at a time.
#[test]
fn texts_of_its_smsc_reach_their_account() {
    for backend in Backend::ALL {
        receive(backend);
    }
}

fn receive(backend: Backend) {
    let receiver = Receiver::start();
    let address = {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        free.local_addr().expect("its address")
    };
    let service = start(backend, carrier("kannel", address, "bind = \"pair\""));
    let url = receiver.url("/inbound");
    let number = ["--number", KannelSmsc::RECIPIENT, "--account", "main"];
    let added = service
        .server
        .cli(&[&["number", "add"], &number[..], &["--url", &url]].concat());
    assert!(added.status.success(), "{added:?}");

    let smsc = KannelSmsc::start(address, TEXTS);
    let count = TEXTS as usize;
    let called = wait_for("the callbacks", || {
        Some(receiver.received()).filter(|received| received.len() >= count)
    });
    assert_eq!(called.len(), count, "{}", smsc.log());
    let inbox = service.get("/sms/inbox?limit=1000").json();
    let inbox = inbox.as_array().expect("a list");
    assert_eq!(inbox.len(), count, "{}", smsc.log());
    let mut texts = Vec::new();
    for text in inbox {
        assert_eq!(text["from"], KannelSmsc::SENDER, "{text}");
        assert_eq!(text["to"], KannelSmsc::RECIPIENT, "{text}");
        let number = text["message"]
            .as_str()
            .and_then(|text| text.parse::<u32>().ok());
        texts.push(number.unwrap_or_else(|| panic!("{text}")));
    }
    texts.sort_unstable();
    assert!(texts.into_iter().eq(1..=TEXTS), "{}", smsc.log());
}
