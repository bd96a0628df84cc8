//! OAuth clients, authorization requests and grants.

mod caps;
mod families;
mod people;
mod renewals;

use std::sync::Arc;

use domain::oauth::{
    AuthorizationRequest, Challenge, ClientName, ClientRecord, CodeProof, GrantRefusal, Granted,
    RedirectUri, SALT_BYTES, SuccessorSalt, Verifier,
};
use domain::ports::{
    Approval, CodeRedemption, NewPair, Revoked, Rotated, Rotation, Store, StoreError, StoredClient,
};
use domain::{AccountId, Permission, Permissions, PersonId, Timestamp, TokenId};
use jiff::SignedDuration;

use super::sample::{at, create_account, hash, new_token};

on_both_stores!(
    a_client_is_stored_until_it_expires,
    the_oldest_unused_client_is_replaced,
    the_number_of_requests_is_limited,
    a_request_is_answered_once,
    an_expired_request_cannot_be_answered,
    a_code_gives_two_listed_tokens,
    a_refresh_token_gives_no_access,
    a_refused_code_changes_nothing,
    reuse_of_a_code_ends_its_tokens,
    every_change_of_tokens_raises_the_version,
    expired_rows_are_deleted,
);

/// Undoes the migration that added grants.
pub(super) const UNDO_GRANTS: &str = "
    DROP TABLE oauth_client; DROP TABLE oauth_request; DROP TABLE oauth_grant;
    DROP INDEX token_grant; DROP INDEX token_granted_expiry;
    ALTER TABLE token DROP COLUMN kind; ALTER TABLE token DROP COLUMN grant_id";

pub(super) type Outcome = Result<Granted, GrantRefusal>;
pub(super) type Renewed = Result<Rotated, GrantRefusal>;

/// The example of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const DAY: i64 = 24 * 3600;

fn two_scopes() -> Permissions {
    [Permission::SmsRates, Permission::SmsSend]
        .into_iter()
        .collect()
}

fn redirect() -> RedirectUri {
    RedirectUri::parse("https://client.example/cb?x=1").expect("an address")
}

fn client(id: &str, expires: Timestamp) -> StoredClient {
    let other = RedirectUri::parse("http://127.0.0.1/cb").expect("an address");
    StoredClient {
        client: ClientRecord {
            id: id.to_owned(),
            name: ClientName::parse("Ácme 'Desk'").expect("a name"),
            redirects: vec![redirect(), other],
        },
        created_at: at(0),
        expires,
    }
}

pub(super) fn request() -> AuthorizationRequest {
    AuthorizationRequest {
        client_id: "client".to_owned(),
        client_name: ClientName::parse("Ácme 'Desk'").expect("a name"),
        redirect: redirect(),
        challenge: Challenge::parse(CHALLENGE).expect("a challenge"),
        state: Some("a\0b ü".to_owned()),
        scopes: two_scopes(),
        resource: "https://mcp.example/mcp".to_owned(),
        expires: at(600),
    }
}

fn approval(account: AccountId, code: &str) -> Approval {
    Approval {
        account,
        person: None,
        scopes: two_scopes(),
        daily_cap: None,
        code: hash(code),
        code_expires: at(60),
        now: at(0),
    }
}

/// A pair of tokens whose secrets are `access NAME` and `refresh NAME`, issued at this second.
fn pair(name: &str, second: i64) -> NewPair {
    NewPair {
        access: hash(&format!("access {name}")),
        access_expires: at(second + 3600),
        refresh: hash(&format!("refresh {name}")),
        refresh_expires: at(second + 30 * DAY),
        client_expires: at(second + 90 * DAY),
        grant_lifetime: SignedDuration::from_hours(180 * 24),
        now: at(second),
    }
}

/// The salt that a pair of this name is derived from.
fn salt(name: &str) -> SuccessorSalt {
    let mut bytes = [0; SALT_BYTES];
    bytes.copy_from_slice(&hash(name).as_bytes()[..SALT_BYTES]);
    SuccessorSalt::from_bytes(bytes)
}

fn redemption(code: &str, name: &str) -> CodeRedemption {
    CodeRedemption {
        code: hash(code),
        proof: CodeProof {
            client_id: "client".to_owned(),
            redirect: Some(redirect().as_str().to_owned()),
            verifier: Verifier::parse(VERIFIER).expect("a verifier"),
        },
        pair: pair(name, 1),
    }
}

fn rotation(from: &str, name: &str) -> Rotation {
    Rotation {
        refresh: hash(&format!("refresh {from}")),
        client_id: "client".to_owned(),
        scopes: None,
        pair: pair(name, 2),
        salt: salt(name),
    }
}

pub(super) async fn approve(store: &Arc<dyn Store>, account: AccountId, code: &str) {
    assert!(approve_as(store, account, None, code).await);
}

/// Approves a new request; `false` if the person may not.
pub(super) async fn approve_as(
    store: &Arc<dyn Store>,
    account: AccountId,
    person: Option<PersonId>,
    code: &str,
) -> bool {
    let created = store.create_request(&hash(code), &request(), 10).await;
    assert!(created.expect("answers"));
    let approval = Approval {
        person,
        ..approval(account, code)
    };
    let granted = store.approve_request(&hash(code), &approval).await;
    granted.expect("answers")
}

pub(super) async fn redeem(store: &Arc<dyn Store>, code: &str, name: &str) -> Outcome {
    let redeemed = store.redeem_code(&redemption(code, name)).await;
    redeemed.expect("answers")
}

async fn renew(store: &Arc<dyn Store>, from: &str, name: &str) -> Renewed {
    let renewed = store.rotate_refresh(&rotation(from, name)).await;
    renewed.expect("answers")
}

/// Creates an account with a grant, whose first pair of tokens has this name.
pub(super) async fn granted(store: &Arc<dyn Store>, name: &str) -> AccountId {
    let account = create_account(store, name).await;
    approve(store, account, name).await;
    redeem(store, name, name).await.expect("redeemed");
    account
}

pub(super) async fn opens(store: &Arc<dyn Store>, secret: &str) -> bool {
    let found = store.find_access(&hash(secret)).await;
    found.expect("answers").is_some()
}

/// The names in the token list, and their IDs.
async fn listed(store: &Arc<dyn Store>) -> Vec<(String, TokenId)> {
    let tokens = store.list_tokens(None).await.expect("answers");
    tokens
        .into_iter()
        .map(|token| (token.access.name, token.id))
        .collect()
}

async fn names(store: &Arc<dyn Store>) -> Vec<String> {
    listed(store)
        .await
        .into_iter()
        .map(|(name, _)| name)
        .collect()
}

async fn a_client_is_stored_until_it_expires(store: Arc<dyn Store>) {
    let stored = client("client", at(100));
    assert!(store.create_client(&stored, 10).await.expect("answers"));
    for (id, second, known) in [
        ("client", 99, true),
        ("client", 100, false),
        ("Client", 1, false),
        ("", 1, false),
    ] {
        let found = store.find_client(id, at(second)).await.expect("answers");
        let expected = known.then(|| stored.client.clone());
        assert_eq!(found, expected, "{id:?} at {second}");
    }
    // A client with tokens is kept longer.
    granted(&store, "acme").await;
    let found = store.find_client("client", at(90 * DAY)).await;
    assert_eq!(found.expect("answers"), Some(stored.client));
}

async fn the_oldest_unused_client_is_replaced(store: Arc<dyn Store>) {
    let create = async |id: &str, expires, limit| {
        let created = store.create_client(&client(id, expires), limit).await;
        created.expect("answers")
    };
    assert!(create("client", at(100), 2).await);
    granted(&store, "acme").await;
    assert!(create("old", at(DAY), 2).await);
    assert!(
        create("new", at(DAY + 1), 2).await,
        "it replaces an unused one"
    );
    for (id, known) in [("client", true), ("old", false), ("new", true)] {
        let found = store.find_client(id, at(200)).await.expect("answers");
        assert_eq!(found.is_some(), known, "{id}");
    }
    assert!(
        !create("late", at(DAY + 2), 1).await,
        "a used one is not replaced"
    );
    let found = store.find_client("client", at(200)).await;
    assert!(found.expect("answers").is_some());
}

async fn the_number_of_requests_is_limited(store: Arc<dyn Store>) {
    for (n, expected) in [true, true, false].into_iter().enumerate() {
        let id = n.to_string();
        let created = store.create_client(&client(&id, at(9)), 9).await;
        assert!(created.expect("answers"), "client {n}");
        let created = store.create_request(&hash(&id), &request(), 2).await;
        assert_eq!(created.expect("answers"), expected, "request {n}");
    }
    let again = store.create_client(&client("0", at(9)), 9).await;
    assert!(
        matches!(again, Err(StoreError::Unexpected { .. })),
        "{again:?}"
    );
}

async fn a_request_is_answered_once(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    for name in ["yes", "no"] {
        let created = store.create_request(&hash(name), &request(), 10).await;
        assert!(created.expect("answers"));
        let found = store.find_request(&hash(name), at(599)).await;
        assert_eq!(found.expect("answers"), Some(request()), "{name}");
    }
    let approval = |code| approval(account, code);
    for (name, code, expected) in [
        ("yes", "a", true),
        ("yes", "b", false),
        ("none", "c", false),
    ] {
        let granted = store.approve_request(&hash(name), &approval(code)).await;
        assert_eq!(granted.expect("answers"), expected, "{code}");
    }
    for expected in [Some(request()), None] {
        let denied = store.deny_request(&hash("no"), at(1)).await;
        assert_eq!(denied.expect("answers"), expected);
    }
    let granted = store.approve_request(&hash("no"), &approval("d")).await;
    assert!(!granted.expect("answers"), "denied before");
    for name in ["yes", "no"] {
        let found = store.find_request(&hash(name), at(1)).await;
        assert_eq!(found.expect("answers"), None, "{name}");
    }
    assert_eq!(names(&store).await, Vec::<String>::new());
}

async fn an_expired_request_cannot_be_answered(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let created = store.create_request(&hash("late"), &request(), 10).await;
    assert!(created.expect("answers"));
    let found = store.find_request(&hash("late"), at(600)).await;
    assert_eq!(found.expect("answers"), None);
    let late = Approval {
        now: at(600),
        ..approval(account, "code")
    };
    let granted = store.approve_request(&hash("late"), &late).await;
    assert!(!granted.expect("answers"));
    let denied = store.deny_request(&hash("late"), at(600)).await;
    assert_eq!(denied.expect("answers"), None);
    assert_eq!(
        redeem(&store, "code", "a").await,
        Err(GrantRefusal::Unknown)
    );
}

async fn a_code_gives_two_listed_tokens(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    approve(&store, account, "code").await;
    let expected = Granted {
        account,
        scopes: two_scopes(),
        access_expires: at(3601),
    };
    assert_eq!(redeem(&store, "code", "a").await, Ok(expected));
    let access = store.find_access(&hash("access a")).await;
    let access = access.expect("answers").expect("it is valid");
    assert_eq!(access.name, "oauth:access:Ácme 'Desk'");
    assert_eq!(
        (access.account, access.permissions),
        (account, two_scopes())
    );
    assert_eq!(access.expires, Some(at(3601)));
    let list = store.list_tokens(Some(account)).await.expect("answers");
    let list: Vec<_> = list
        .iter()
        .map(|token| (token.access.name.as_str(), token.access.expires))
        .collect();
    let expected = [
        ("oauth:access:Ácme 'Desk'", Some(at(3601))),
        ("oauth:refresh:Ácme 'Desk'", Some(at(30 * DAY + 1))),
    ];
    assert_eq!(list, expected);
}

async fn a_refresh_token_gives_no_access(store: Arc<dyn Store>) {
    granted(&store, "acme").await;
    assert!(opens(&store, "access acme").await);
    assert!(!opens(&store, "refresh acme").await);
}

async fn a_refused_code_changes_nothing(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    approve(&store, account, "code").await;
    let good = || redemption("code", "a");
    let other = Verifier::parse(&"a".repeat(43)).expect("a verifier");
    let with = |change: fn(&mut CodeProof)| {
        let mut redemption = good();
        change(&mut redemption.proof);
        redemption
    };
    let mut wrong_proof = good();
    wrong_proof.proof.verifier = other;
    let late = CodeRedemption {
        pair: pair("a", 60),
        ..good()
    };
    let other_client = with(|proof| proof.client_id.push('x'));
    let other_redirect =
        with(|proof| proof.redirect = Some("https://client.example/cb".to_owned()));
    for (name, redemption, refusal) in [
        ("unknown", redemption("other", "a"), GrantRefusal::Unknown),
        ("late", late, GrantRefusal::Expired),
        ("client", other_client, GrantRefusal::OtherClient),
        ("redirect", other_redirect, GrantRefusal::OtherRedirect),
        ("proof", wrong_proof, GrantRefusal::Proof),
    ] {
        let redeemed = store.redeem_code(&redemption).await.expect("answers");
        assert_eq!(redeemed, Err(refusal), "{name}");
        assert_eq!(names(&store).await, Vec::<String>::new(), "{name}");
    }
    assert!(
        redeem(&store, "code", "a").await.is_ok(),
        "the code is still valid"
    );
}

async fn reuse_of_a_code_ends_its_tokens(store: Arc<dyn Store>) {
    granted(&store, "acme").await;
    renew(&store, "acme", "second").await.expect("redeemed");
    for n in 0..2 {
        let again = redeem(&store, "acme", "thief").await;
        assert_eq!(again, Err(GrantRefusal::Replayed), "{n}");
        assert_eq!(names(&store).await, Vec::<String>::new(), "{n}");
    }
    for secret in ["access acme", "access second", "access thief"] {
        assert!(!opens(&store, secret).await, "{secret}");
    }
    let renewed = renew(&store, "second", "third").await;
    assert_eq!(renewed, Err(GrantRefusal::Revoked));
}

async fn every_change_of_tokens_raises_the_version(store: Arc<dyn Store>) {
    let account = create_account(&store, "acme").await;
    let version = async || store.access_version().await.expect("answers");
    let mut last = version().await;
    let mut raised = async || {
        let now = version().await;
        std::mem::replace(&mut last, now) < now
    };
    approve(&store, account, "code").await;
    assert!(!raised().await, "a code gives no access yet");
    redeem(&store, "other", "a").await.expect_err("unknown");
    assert!(!raised().await, "no token was issued");
    redeem(&store, "code", "a").await.expect("redeemed");
    assert!(raised().await, "redeeming");
    renew(&store, "a", "b").await.expect("redeemed");
    assert!(raised().await, "renewing");
    let revoked = store
        .revoke_granted(&hash("access b"), "client", at(5))
        .await;
    assert_eq!(revoked.expect("answers"), Revoked::Done);
    assert!(raised().await, "revoking");
    renew(&store, "a", "c").await.expect_err("used");
    assert!(raised().await, "reuse");
    renew(&store, "a", "c").await.expect_err("used");
    assert!(!raised().await, "no token is left");
}

async fn expired_rows_are_deleted(store: Arc<dyn Store>) {
    let account = granted(&store, "acme").await;
    let created = store.create_client(&client("unused", at(DAY)), 10).await;
    assert!(created.expect("answers"));
    let created = store.create_request(&hash("open"), &request(), 10).await;
    assert!(created.expect("answers"));
    approve(&store, account, "never redeemed").await;
    store
        .create_token(&new_token(account, "created by its owner"))
        .await
        .expect("created");
    // At each second, these rows are deleted: the request; the client; the grant without tokens and the access token;
    // the refresh token with its grant, which has no token left.
    for (second, expected) in [
        (599, 0),
        (600, 1),
        (DAY, 1),
        (DAY + 3601, 2),
        (31 * DAY, 0),
        (31 * DAY + 1, 2),
        (99 * DAY, 0),
    ] {
        let mut pruned = 0;
        loop {
            let step = store.prune_grants(at(second), 10).await.expect("answers");
            pruned += step;
            if step == 0 {
                break;
            }
        }
        assert_eq!(pruned, expected, "at {second}");
    }
    assert_eq!(names(&store).await, ["token created by its owner"]);
}
