//! What is changed by way of one node counts on all others within a second.

use std::time::{Duration, Instant};

use super::{Cluster, sms};
use crate::rest::service::wait_for;

const A_SECOND: Duration = Duration::from_secs(1);
const LATVIA: &str = "Latvia,LV,All other carriers,All other carriers,247,,0.4242";

/// Waits until it is so, and says that it came within a second of the change.
fn within_a_second(what: &str, changed: Instant, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
    let took = changed.elapsed();
    assert!(took < A_SECOND, "{what} took {took:?}");
}

/// Changes go through the command line beside the first node; the second has what was before in its memory. Each is timed
/// from the moment in which the command has ended.
#[test]
fn tokens_accounts_and_prices_are_followed_by_every_node() {
    let cluster = Cluster::start([|builder| builder, |builder| builder]);
    let post = || cluster.call(1, "POST", "/sms", sms("now?").to_string().as_bytes());
    let rates = || cluster.call(1, "GET", "/rates", b"").text();
    assert_eq!(post().status, 200);

    cluster.done(&["account", "suspend", "acme"]);
    within_a_second("the suspension", Instant::now(), || post().status == 403);
    cluster.done(&["account", "resume", "acme"]);
    within_a_second("the resumption", Instant::now(), || post().status == 200);

    let before = rates();
    let list = cluster.nodes[0].data_dir().join("rates.csv");
    std::fs::create_dir_all(cluster.nodes[0].data_dir()).expect("a folder");
    let exported = cluster.nodes[0].cli(&["rates", "export"]).stdout;
    let exported = String::from_utf8(exported).expect("text");
    let head = exported.lines().next().expect("a line of names");
    let text = format!("{head}\r\n{LATVIA}\r\n");
    std::fs::write(&list, text).expect("a file");
    let list = list.to_str().expect("a plain path").to_owned();
    cluster.done(&["rates", "import", &list]);
    within_a_second("the prices", Instant::now(), || rates() != before);

    let tokens = cluster.cli(&["token", "list", "--account", "acme", "--json"]);
    let id = tokens[0]["id"].to_string();
    cluster.done(&["token", "revoke", &id]);
    within_a_second("the revocation", Instant::now(), || post().status == 401);
}
