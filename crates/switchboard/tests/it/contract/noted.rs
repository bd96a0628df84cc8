//! Whoever changes something is noted down, whatever the change.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use async_trait::async_trait;
use domain::clock::SystemClock;
use domain::oauth::ClientIdUrl;
use domain::person::Password;
use domain::ports::{
    AuditFilter, CallbackFilter, Change, ClientDocuments, Look, Store, UnusableDocument,
};
use domain::sender::Step;
use domain::{
    AccountId, AllowList, Channel, Clock, Email, Money, Permission, Permissions, Role, SenderId,
    TokenId,
};
use engine::accounts::TokenOrder;
use engine::audit::Action;
use engine::catalogues::ReferenceFiles;
use engine::people::Hasher;
use engine::prices::Format;
use engine::{
    Accounts, Audit, By, Catalogues, GrantSettings, Grants, People, Reports, SenderReview, SignIn,
};
use jiff::SignedDuration;

use super::oauth::{approve, redeem, request};
use super::sample::{create_account, hash};
use super::senders::{name, new};

on_both_stores!(
    every_action_is_noted_by_whoever_does_it,
    what_is_refused_is_noted_twice,
    no_secret_is_ever_noted,
);

const FROM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
const PASSWORD: &str = "violet tram eleven";

struct NoDocuments;

#[async_trait]
impl ClientDocuments for NoDocuments {
    async fn fetch(&self, _id: &ClientIdUrl) -> Result<Vec<u8>, UnusableDocument> {
        unreachable!("no client here has a document")
    }
}

/// The use cases on one store, and what they were told that is secret.
struct House {
    store: Arc<dyn Store>,
    by: By,
    accounts: Accounts,
    people: People,
    sign_in: SignIn,
    senders: SenderReview,
    callbacks: Reports,
    catalogues: Catalogues,
    grants: Grants,
    audit: Audit,
    account: AccountId,
    secrets: Vec<String>,
}

impl House {
    async fn open(store: Arc<dyn Store>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let hasher = Arc::new(Hasher::default());
        let account = create_account(&store, "acme").await;
        let catalogues = Catalogues::load(store.clone(), clock.clone()).await;
        let hour = SignedDuration::from_hours(1);
        let settings = GrantSettings {
            issuer: "https://auth.example".to_owned(),
            resource: "https://mcp.example/mcp".to_owned(),
            code_lifetime: hour,
            access_lifetime: hour,
            refresh_lifetime: hour,
        };
        let documents = Arc::new(NoDocuments);
        Self {
            by: By {
                who: "ann@example.com".to_owned(),
                address: Some(FROM),
            },
            accounts: Accounts::new(store.clone(), clock.clone()),
            people: People::new(store.clone(), clock.clone(), hasher.clone()),
            sign_in: SignIn::new(store.clone(), clock.clone(), hasher),
            senders: SenderReview::new(store.clone(), clock.clone()),
            callbacks: Reports::new(store.clone(), clock.clone()),
            catalogues: catalogues.expect("the store answers"),
            grants: Grants::new(store.clone(), clock.clone(), documents, settings),
            audit: Audit::new(store.clone(), clock),
            account,
            secrets: vec![PASSWORD.to_owned()],
            store,
        }
    }

    /// Everything that was noted, the newest first.
    async fn log(&self) -> Vec<Change> {
        let look = Look {
            before: None,
            limit: 1000,
        };
        let found = self.audit.look(&AuditFilter::default(), look).await;
        let rows = found.expect("the store answers").rows.into_iter();
        rows.map(|entry| entry.change).collect()
    }

    async fn token(&mut self) -> TokenId {
        let order = TokenOrder {
            name: "backend".to_owned(),
            permissions: Permissions::all(),
            allow: AllowList::default(),
            expires: None,
        };
        let made = self.accounts.create_token(&self.by, self.account, order);
        let (id, secret) = made.await.expect("a token");
        self.secrets.push(secret.reveal().to_owned());
        id
    }

    async fn sender(&self, called: &str) -> SenderId {
        new(&self.store, &name(self.account, called)).await
    }

    async fn decide(&self, id: SenderId, step: Step) {
        let decided = self.senders.decide(&self.by, id, step, Some("as told"));
        decided.await.expect("the step is allowed");
    }

    async fn suspend(&self, suspended: bool) {
        let set = self.accounts.set_suspended(&self.by, "acme", suspended);
        set.await.expect("there is such an account");
    }

    async fn invite(&mut self, email: &str) -> String {
        let (email, account) = (email.parse().expect("an address"), Some(self.account));
        let invited = self.people.invite(&self.by, email, Role::Member, account);
        let link = invited.await.expect("invited").link;
        self.secrets.push(link.clone());
        link
    }

    async fn accept(&mut self, link: &str) {
        let session = self.people.accept(FROM, link, password()).await;
        self.secrets.push(session.expect("a good link"));
    }

    /// Somebody who can sign in.
    async fn join(&mut self, email: &str) {
        let link = self.invite(email).await;
        self.accept(&link).await;
    }

    async fn reset(&mut self, email: &str) -> String {
        let email: Email = email.parse().expect("an address");
        let known = self.store.find_credentials(&email).await.expect("answers");
        let person = known.expect("somebody").person;
        let link = self.people.invite_again(&self.by, &person).await;
        let link = link.expect("a link").link;
        self.secrets.push(link.clone());
        link
    }

    async fn open_session(&mut self, email: &str) -> String {
        let opened = self.sign_in.with_password(email, password(), FROM, None);
        let session = opened.await.expect("the right password");
        self.secrets.push(session.clone());
        session
    }

    async fn import_prices(&self) {
        let list =
            "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\nLatvia,LV,All,All,,,0.05\n";
        let (account, format) = (Some(self.account), Format::Csv);
        let plan = self
            .catalogues
            .plan_prices(Channel::Sms, account, list, format);
        let plan = plan.expect("a good list");
        let imported = self.catalogues.import_prices(&self.by, plan).await;
        imported.expect("nobody else imports");
    }

    async fn approve(&mut self, id: &str) {
        let mut asked = request();
        asked.expires = SystemClock.now() + SignedDuration::from_mins(10);
        let kept = self.store.create_request(&hash(id), &asked, 10).await;
        assert!(kept.expect("answers"));
        let scopes = [Permission::SmsRates];
        let granted = self.grants.approve(&self.by, id, self.account, &scopes);
        let address = granted.await.expect("answers").expect("the request stands");
        let (_, code) = address.as_str().split_once("code=").expect("a code");
        let code = code.split('&').next().expect("its end");
        self.secrets.extend([id.to_owned(), code.to_owned()]);
    }

    /// Does it, and says who did, and whether it is about the account.
    async fn perform(&mut self, action: Action) -> (&'static str, bool) {
        const ANN: &str = "ann@example.com";
        const BOB: &str = "bob@example.com";
        let by = self.by.clone();
        match action {
            Action::AccountCreate => {
                let made = self.accounts.create(&by, "second", Money::ZERO).await;
                self.secrets
                    .push(made.expect("a free name").callback_secret);
                return (ANN, false);
            }
            Action::AccountCredit => {
                let amount = Money::from_micros(5_000_000);
                let credited = self.accounts.credit(&by, "acme", amount, Some("paid"));
                credited.await.expect("within bounds");
            }
            Action::AccountRules => {
                let change = |rules: &mut domain::billing::SpendingRules| {
                    rules.per_recipient_hour = Some(3);
                };
                let set = self.accounts.set_rules(&by, "acme", change).await;
                set.expect("there is such an account");
            }
            Action::AccountSuspend => self.suspend(true).await,
            Action::AccountResume => self.suspend(false).await,
            Action::TokenCreate => drop(self.token().await),
            Action::TokenRevoke => {
                let id = self.token().await;
                let revoked = self.accounts.revoke_token(&by, None, id).await;
                revoked.expect("there is such a token");
            }
            Action::SecretShow => {
                let account = self.accounts.get("acme").await.expect("there is");
                let shown = self.accounts.callback_secret(&by, &account).await;
                self.secrets.push(shown.expect("the store answers"));
            }
            Action::PersonInvite => drop(self.invite("new@example.com").await),
            Action::PersonJoin => {
                self.join(BOB).await;
                return (BOB, true);
            }
            Action::PersonReset => drop(self.reset(BOB).await),
            Action::PersonPassword => {
                let link = self.reset(BOB).await;
                self.accept(&link).await;
                return (BOB, true);
            }
            Action::LinkCreate => {
                let link = self.sign_in.create_link(&by, self.account).await;
                self.secrets.push(link.expect("a link"));
            }
            Action::SessionOpen => {
                self.open_session(BOB).await;
                return (BOB, true);
            }
            Action::SessionEnd => {
                let session = self.open_session(BOB).await;
                self.sign_in.end(FROM, &session).await.expect("it ends");
                return (BOB, true);
            }
            Action::SenderApprove => {
                let id = self.sender("Approved").await;
                self.decide(id, Step::Approve).await;
            }
            Action::SenderReject => {
                let id = self.sender("Rejected").await;
                self.decide(id, Step::Reject).await;
            }
            Action::SenderRevoke => {
                let id = self.sender("Revoked").await;
                self.decide(id, Step::Approve).await;
                self.decide(id, Step::Revoke).await;
            }
            Action::PricesImport => self.import_prices().await,
            Action::ReferenceImport => {
                let plan = self.catalogues.plan_reference(ReferenceFiles::embedded());
                let plan = plan.expect("good data");
                let imported = self.catalogues.import_reference(&by, plan).await;
                imported.expect("nobody else imports");
                return (ANN, false);
            }
            Action::CallbackReplay => {
                let filter = CallbackFilter {
                    account: Some(self.account),
                    url_prefix: Some("https://one.example/secret/path".to_owned()),
                    ..CallbackFilter::default()
                };
                let replayed = self.callbacks.replay(&by, &filter).await;
                replayed.expect("the store answers");
                self.secrets.push("secret/path".to_owned());
            }
            Action::GrantApprove => self.approve("question").await,
            Action::GrantRevoke => {
                approve(&self.store, self.account, "granted").await;
                let redeemed = redeem(&self.store, "granted", "pair").await;
                redeemed.expect("a good code");
                let token = "refresh pair";
                let revoked = self.grants.revoke(FROM, token, "client").await;
                assert!(revoked.expect("answers"), "it is this client's");
                self.secrets.push(token.to_owned());
                return ("client client", false);
            }
        }
        (ANN, true)
    }
}

fn password() -> Password {
    Password::given(PASSWORD.to_owned())
}

async fn every_action_is_noted_by_whoever_does_it(store: Arc<dyn Store>) {
    let mut house = House::open(store).await;
    for action in Action::ALL {
        let before = house.log().await.len();
        let (who, is_of_account) = house.perform(action).await;
        let log = house.log().await;
        assert!(log.len() > before, "{action:?}");
        let noted = &log[0];
        assert_eq!(noted.action, action.name());
        assert_eq!(
            (noted.who.as_str(), noted.address),
            (who, Some(FROM)),
            "{action:?}"
        );
        let account = is_of_account.then_some(house.account);
        assert_eq!(noted.account, account, "{action:?}");
        assert!(!noted.subject.is_empty(), "{action:?}");
    }
    let refused: Vec<Change> = house.log().await;
    let refused = refused.iter().filter(|it| it.action.ends_with(".refused"));
    assert_eq!(refused.count(), 0, "nothing was refused");
}

async fn what_is_refused_is_noted_twice(store: Arc<dyn Store>) {
    let mut house = House::open(store).await;
    let by = house.by.clone();
    house.join("bob@example.com").await;
    let id = house.sender("Approved").await;
    house.decide(id, Step::Approve).await;

    let taken = house.accounts.create(&by, "acme", Money::ZERO).await;
    taken.expect_err("the name is taken");
    let much = Money::from_micros(i64::MAX / 4);
    let credited = house.accounts.credit(&by, "acme", much, None).await;
    credited.expect_err("out of bounds");
    let decided = house.senders.decide(&by, id, Step::Approve, None).await;
    decided.expect_err("approved already");
    let mut log = house.log().await;
    log.truncate(6);
    let names: Vec<&str> = log.iter().rev().map(|it| it.action.as_str()).collect();
    let expected = [
        "account.create",
        "account.create.refused",
        "account.credit",
        "account.credit.refused",
        "sender.approve",
        "sender.approve.refused",
    ];
    assert_eq!(names, expected);
    for pair in log.chunks(2) {
        assert!(!pair[0].detail.is_empty(), "why: {:?}", pair[0]);
        assert_eq!(pair[0].subject, pair[1].subject);
    }

    for (email, is_noted) in [("bob@example.com", true), ("nobody@example.com", false)] {
        let before = house.log().await.len();
        let wrong = Password::given("not this one".to_owned());
        let opened = house.sign_in.with_password(email, wrong, FROM, None).await;
        opened.expect_err("a wrong password");
        let log = house.log().await;
        assert_eq!(log.len() - before, usize::from(is_noted), "{email}");
        if is_noted {
            assert_eq!(log[0].action, "session.open.refused");
            assert_eq!(
                (log[0].who.as_str(), log[0].account),
                (email, Some(house.account))
            );
        }
    }
}

async fn no_secret_is_ever_noted(store: Arc<dyn Store>) {
    let mut house = House::open(store).await;
    for action in Action::ALL {
        house.perform(action).await;
    }
    assert!(house.secrets.len() > 10, "{:?}", house.secrets.len());
    for change in house.log().await {
        let all = format!("{} {} {}", change.who, change.subject, change.detail);
        for secret in &house.secrets {
            assert!(!all.contains(secret.as_str()), "{}: {all}", change.action);
        }
    }
}
