//! When a connection is reused, and when not.

use std::collections::HashSet;

use crate::receiver::{Receiver, Then, answer};
use crate::setup::{client, deliver};

fn connections(receiver: &Receiver) -> usize {
    let requests = receiver.requests();
    let distinct: HashSet<_> = requests.iter().map(|request| request.connection).collect();
    distinct.len()
}

#[tokio::test]
async fn a_connection_serves_many_callbacks() {
    let receiver = Receiver::answering_ok().await;
    let client = client();
    for _ in 0..50 {
        assert!(deliver(&client, &receiver.url()).await.received);
    }
    assert_eq!(receiver.requests().len(), 50);
    // If a connection is not back in the pool for the next callback, a second one is opened.
    assert!(connections(&receiver) <= 2, "{}", connections(&receiver));
}

#[tokio::test]
async fn a_connection_whose_body_was_cut_is_closed() {
    let mut receiver = Receiver::start("127.0.0.1:0", |_| {
        (answer("200 OK", &"OK ".repeat(1_000_000)), Then::Continue)
    })
    .await;
    let client = client();
    for round in 1..=3 {
        let attempt = deliver(&client, &receiver.url()).await.attempt;
        assert_eq!(attempt.reason, "200, but the body was longer than 1 KiB");
        assert_eq!(attempt.body.len(), 1024);
        receiver.wait_until_closed(round).await;
    }
    assert_eq!(connections(&receiver), 3);
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_costs_no_attempt() {
    // The receiver promises keep-alive, but closes at the second request of each connection.
    let receiver = Receiver::start("127.0.0.1:0", |request| match request {
        1 => (answer("200 OK", "OK"), Then::Continue),
        _ => (String::new(), Then::Close),
    })
    .await;
    let client = client();
    for _ in 0..10 {
        let delivery = deliver(&client, &receiver.url()).await;
        assert!(delivery.received, "{}", delivery.attempt.reason);
    }
    let requests = receiver.requests().len();
    assert!(requests > 10, "at least one was sent again: {requests}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_all_arrive() {
    let receiver = Receiver::answering_ok().await;
    let client = client();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let (client, url) = (client.clone(), receiver.url());
        tasks.spawn(async move {
            for _ in 0..20 {
                assert!(deliver(&client, &url).await.received);
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(receiver.requests().len(), 64 * 20);
}
