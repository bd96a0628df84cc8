//! The use cases on one store, with one call for each action of the audit log.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use async_trait::async_trait;
use domain::clock::SystemClock;
use domain::oauth::ClientIdUrl;
use domain::person::{Device, Password};
use domain::ports::{
    AuditFilter, CallbackFilter, Change, ClientDocuments, Cursor, Store, UnusableDocument,
};
use domain::sender::Step;
use domain::{
    AccountId, AllowList, Channel, Clock, Money, Permission, Permissions, Person, Role, SenderId,
    TokenId,
};
use engine::audit::Action;
use engine::catalogue::ReferenceFiles;
use engine::catalogue::prices::Format;
use engine::identity::accounts::{SECRET_OVERLAP, TokenInput};
use engine::identity::grants::Consent;
use engine::identity::hasher::Hasher;
use engine::identity::people::{OwnAccess, PeopleScope, RecoveryCodes};
use engine::identity::sign_in::{SignInContext, SignInStep};
use engine::{
    Accounts, Actor, Audit, CallbackHistory, Catalogues, GrantSettings, Grants, People,
    SenderReview, SignIn,
};
use jiff::SignedDuration;

use crate::oauth::{approve, redeem, request};
use crate::sample::{create_account, hash};
use crate::senders::{name, new};

pub(super) const FROM: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
const PASSWORD: &str = "violet tram eleven";
const ANN: &str = "ann@example.com";
const BOB: &str = "bob@example.com";

struct NoDocuments;

#[async_trait]
impl ClientDocuments for NoDocuments {
    async fn fetch(&self, _: IpAddr, _id: &ClientIdUrl) -> Result<Vec<u8>, UnusableDocument> {
        unreachable!("no client here has a document")
    }
}

/// The use cases on one store, and what they were told that is secret.
pub(super) struct House {
    pub(super) store: Arc<dyn Store>,
    pub(super) by: Actor,
    pub(super) accounts: Accounts,
    pub(super) people: People,
    pub(super) sign_in: SignIn,
    own: OwnAccess,
    pub(super) senders: SenderReview,
    callbacks: CallbackHistory,
    catalogues: Catalogues,
    grants: Grants,
    audit: Audit,
    pub(super) account: AccountId,
    pub(super) secrets: Vec<String>,
}

impl House {
    pub(super) async fn open(store: Arc<dyn Store>) -> Self {
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
            grant_lifetime: SignedDuration::from_hours(24 * 180),
        };
        let documents = Arc::new(NoDocuments);
        Self {
            by: Actor {
                who: ANN.to_owned(),
                address: Some(FROM),
            },
            accounts: Accounts::new(store.clone(), clock.clone()),
            people: People::new(store.clone(), clock.clone(), hasher.clone()),
            own: OwnAccess::new(store.clone(), clock.clone(), hasher.clone()),
            sign_in: SignIn::new(store.clone(), clock.clone(), hasher),
            senders: SenderReview::new(store.clone(), clock.clone()),
            callbacks: CallbackHistory::new(store.clone(), clock.clone()),
            catalogues: catalogues.expect("the store answers"),
            grants: Grants::new(store.clone(), clock.clone(), documents, settings),
            audit: Audit::new(store.clone(), clock),
            account,
            secrets: vec![PASSWORD.to_owned()],
            store,
        }
    }

    /// Everything that was noted, the newest first.
    pub(super) async fn log(&self) -> Vec<Change> {
        let look = Cursor {
            before: None,
            limit: 1000,
        };
        let found = self.audit.look(&AuditFilter::default(), look).await;
        let rows = found.expect("the store answers").rows.into_iter();
        rows.map(|entry| entry.change).collect()
    }

    async fn token(&mut self) -> TokenId {
        let order = TokenInput {
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

    pub(super) async fn sender(&self, called: &str) -> SenderId {
        new(&self.store, &name(self.account, called)).await
    }

    pub(super) async fn decide(&self, id: SenderId, step: Step) {
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
        let entered = self.people.accept(&device(), link, password(), false).await;
        let SignInStep::Session(session) = entered.expect("a good link") else {
            panic!("nobody here has a second factor at this point");
        };
        self.secrets.push(session);
    }

    /// Somebody who can sign in.
    pub(super) async fn join(&mut self, email: &str) {
        let link = self.invite(email).await;
        self.accept(&link).await;
    }

    async fn reset(&mut self, email: &str) -> String {
        let person = self.person(email).await;
        let link = self.people.invite_again(&self.by, &person).await;
        let link = link.expect("a link").link;
        self.secrets.push(link.clone());
        link
    }

    async fn open_session(&mut self, email: &str) -> String {
        let device = device();
        let visit = visit(&device);
        let opened = self.sign_in.with_password(email, password(), &visit);
        let SignInStep::Session(session) = opened.await.expect("the right password") else {
            panic!("nobody here has a second factor at this point");
        };
        self.secrets.push(session.clone());
        session
    }

    async fn person(&self, email: &str) -> Person {
        let email = email.parse().expect("an address");
        let known = self.store.find_credentials(&email).await.expect("answers");
        known.expect("somebody").person
    }

    /// Turns a person's second factor on, if it is not.
    async fn with_second_factor(&mut self, person: &Person) {
        let factor = self.own.second_factor(person).await.expect("answers");
        if factor.active.is_none() {
            self.enable_second_factor(person).await;
        }
    }

    async fn enable_second_factor(&mut self, person: &Person) {
        let secret = self.own.offer(person).await.expect("there is none yet");
        let code = secret.code(SystemClock.now());
        let by = by(person);
        let codes = self.own.enable(&by, person, password(), &code).await;
        self.keep_codes(&codes.expect("the right code"));
        self.secrets.extend([secret.in_letters(), code]);
    }

    fn keep_codes(&mut self, codes: &RecoveryCodes) {
        let codes = codes.iter().map(|code| code.reveal().to_owned());
        self.secrets.extend(codes);
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
        let consent = Consent {
            by: &self.by,
            account: self.account,
            person: None,
            scopes: &scopes,
        };
        let granted = self.grants.approve(id, consent);
        let address = granted.await.expect("answers").expect("the request stands");
        let (_, code) = address.as_str().split_once("code=").expect("a code");
        let code = code.split('&').next().expect("its end");
        self.secrets.extend([id.to_owned(), code.to_owned()]);
    }

    /// Does it, and says who did, and whether it is about the account.
    pub(super) async fn perform(&mut self, action: Action) -> (&'static str, bool) {
        let by = self.by.clone();
        match action {
            Action::AccountCreate
            | Action::AccountCredit
            | Action::AccountRules
            | Action::AccountSuspend
            | Action::AccountResume
            | Action::TokenCreate
            | Action::TokenRevoke
            | Action::SecretShow
            | Action::SecretRotate => {
                return self.perform_on_account(action).await;
            }
            Action::PersonInvite
            | Action::PersonJoin
            | Action::PersonReset
            | Action::PersonPassword
            | Action::PersonRole
            | Action::PersonRemove
            | Action::InvitationWithdraw => {
                return self.perform_on_person(action).await;
            }
            Action::LinkCreate
            | Action::SessionOpen
            | Action::SessionEnd
            | Action::SessionEndAll
            | Action::SecondFactorEnable
            | Action::SecondFactorDisable
            | Action::SecondFactorCodes
            | Action::SecondFactorRemove => {
                return self.perform_on_session(action).await;
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

    /// Accounts and tokens.
    async fn perform_on_account(&mut self, action: Action) -> (&'static str, bool) {
        let by = self.by.clone();
        match action {
            Action::AccountCreate => {
                let made = self.accounts.create(&by, "second", Money::ZERO).await;
                self.secrets.push(made.expect("a free name").1);
                return (ANN, false);
            }
            Action::AccountCredit => {
                let amount = Money::from_micros(5_000_000);
                let credited = self
                    .accounts
                    .credit(&by, "acme", amount, Some("paid"), None);
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
            Action::SecretRotate => {
                let account = self.accounts.get("acme").await.expect("there is");
                let rotated = self
                    .accounts
                    .rotate_callback_secret(&by, &account, SECRET_OVERLAP)
                    .await;
                self.secrets
                    .push(rotated.expect("there is such an account"));
            }
            Action::SecretShow => {
                let account = self.accounts.get("acme").await.expect("there is");
                let shown = self.accounts.callback_secret(&by, &account).await;
                self.secrets.push(shown.expect("the store answers"));
            }
            other => panic!("{other:?} belongs elsewhere"),
        }
        (ANN, true)
    }

    /// People and invitations.
    async fn perform_on_person(&mut self, action: Action) -> (&'static str, bool) {
        let by = self.by.clone();
        match action {
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
            Action::PersonRole => {
                let bob = self.person(BOB).await;
                let (role, account) = (Role::Admin, Some(self.account));
                let set = self
                    .people
                    .set_role(&by, PeopleScope::Everybody, bob.id, role, account);
                set.await.expect("there is such a person");
            }
            Action::PersonRemove => {
                self.join("carl@example.com").await;
                let carl = self.person("carl@example.com").await;
                let removed = self
                    .people
                    .remove(&by, PeopleScope::Everybody, carl.id)
                    .await;
                removed.expect("there is such a person");
            }
            Action::InvitationWithdraw => {
                self.invite("dora@example.com").await;
                let dora = "dora@example.com".parse().expect("an address");
                let withdrawn =
                    self.people
                        .withdraw_invitations(&by, PeopleScope::Everybody, &dora, None);
                withdrawn.await.expect("there is such an invitation");
            }
            other => panic!("{other:?} belongs elsewhere"),
        }
        (ANN, true)
    }

    /// Ways in.
    async fn perform_on_session(&mut self, action: Action) -> (&'static str, bool) {
        let by = self.by.clone();
        match action {
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
            Action::SessionEndAll
            | Action::SecondFactorEnable
            | Action::SecondFactorDisable
            | Action::SecondFactorCodes => {
                let bob = self.person(BOB).await;
                self.perform_own(action, &bob).await;
                return (BOB, true);
            }
            Action::SecondFactorRemove => {
                let bob = self.person(BOB).await;
                self.with_second_factor(&bob).await;
                let removed = self.people.remove_second_factor(&by, bob.id).await;
                removed.expect("there is one");
            }
            other => panic!("{other:?} belongs elsewhere"),
        }
        (ANN, true)
    }

    /// What people do about their own ways in.
    async fn perform_own(&mut self, action: Action, person: &Person) {
        let by = by(person);
        match action {
            Action::SessionEndAll => {
                let ended = self.own.end_sessions(&by, person).await;
                assert!(ended.expect("answers") > 0, "some were open");
            }
            Action::SecondFactorEnable => self.enable_second_factor(person).await,
            Action::SecondFactorDisable => {
                self.with_second_factor(person).await;
                let disabled = self.own.disable(&by, person, password()).await;
                disabled.expect("the right password");
            }
            Action::SecondFactorCodes => {
                self.with_second_factor(person).await;
                let codes = self.own.renew_codes(&by, person, password()).await;
                self.keep_codes(&codes.expect("the right password"));
            }
            other => panic!("{other:?} is about others"),
        }
    }
}

/// Where everybody signs in.
pub(super) fn device() -> Device {
    Device {
        address: Some(FROM),
        browser: "Firefox on Linux".to_owned(),
    }
}

/// A visit from there.
pub(super) fn visit(device: &Device) -> SignInContext<'_> {
    SignInContext {
        device,
        browser: None,
        replaced: None,
    }
}

fn by(person: &Person) -> Actor {
    Actor {
        who: person.email.to_string(),
        address: Some(FROM),
    }
}

fn password() -> Password {
    Password::given(PASSWORD.to_owned())
}
