//! Refused requests of programs.

use std::sync::Arc;

use domain::AccountId;
use domain::ports::{RefusedRequest, Store};

use super::sample::{at, create_account};

on_both_stores!(the_newest_refused_requests_of_an_account_are_kept);

fn request(account: AccountId, token: &str, second: i64) -> RefusedRequest {
    RefusedRequest {
        account,
        token: token.to_owned(),
        at: at(second),
        method: "POST".to_owned(),
        route: "/sms".to_owned(),
        status: 400,
        error: (second % 2 == 0).then_some(41),
        message: format!("refused at {second}"),
    }
}

async fn the_newest_refused_requests_of_an_account_are_kept(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let record = |requests: Vec<RefusedRequest>| {
        let store = store.clone();
        async move {
            let recorded = store.record_refused_requests(&requests, 3).await;
            recorded.expect("the store answers");
        }
    };
    let list = |account, token: &'static str| {
        let store = store.clone();
        async move {
            let listed = store.list_refused_requests(account, token, 10).await;
            listed.expect("the store answers")
        }
    };
    record(vec![
        request(acme, "shop", 1),
        request(acme, "crm", 2),
        request(other, "shop", 1),
    ])
    .await;
    let expected = [request(acme, "shop", 1)];
    assert_eq!(list(acme, "shop").await, expected);
    // The same time again, and more than are kept.
    record(vec![
        request(acme, "shop", 1),
        request(acme, "shop", 3),
        request(acme, "shop", 4),
    ])
    .await;
    let expected = [request(acme, "shop", 4), request(acme, "shop", 3)];
    assert_eq!(list(acme, "shop").await, expected);
    assert_eq!(list(acme, "crm").await, [request(acme, "crm", 2)]);
    assert_eq!(list(other, "shop").await, [request(other, "shop", 1)]);
    assert_eq!(list(other, "crm").await, []);
}
