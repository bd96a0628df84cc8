//! The use cases on one store, with one call for each action of the audit log.

mod sessions;

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use domain::oauth::ClientIdUrl;
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
use engine::clock::SystemClock;
use engine::identity::accounts::{SECRET_OVERLAP, TokenInput};
use engine::identity::grants::Consent;
use engine::identity::hasher::Hasher;
use engine::identity::people::{OwnAccess, PeopleScope, RecoveryCodes};
use engine::identity::sign_in::SignInStep;
use engine::{
    Accounts, Actor, Audit, CallbackHistory, Catalogues, GrantSettings, Grants, People,
    SenderReview, SignIn,
};
use jiff::SignedDuration;

use super::{FROM, PASSWORD, actor, device, lists, password, settings, sign_in_context};
use crate::oauth::{approve, redeem, request};
use crate::sample::{create_account, hash};
use crate::senders::{name, new};

const ANN: &str = "ann@example.com";
const BOB: &str = "bob@example.com";

struct NoDocuments;

#[async_trait]
impl ClientDocuments for NoDocuments {
    async fn fetch(&self, _: IpAddr, _id: &ClientIdUrl) -> Result<Vec<u8>, UnusableDocument> {
        unreachable!("no client here has a document")
    }
}

fn token_input(name: &str) -> TokenInput {
    TokenInput {
        name: name.to_owned(),
        permissions: Permissions::all(),
        allow: AllowList::default(),
        expires: None,
    }
}

/// The use cases on one store, and every secret that they were given or returned.
pub(super) struct UseCases {
    pub(super) store: Arc<dyn Store>,
    pub(super) actor: Actor,
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

impl UseCases {
    pub(super) async fn open(store: Arc<dyn Store>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let hasher = Arc::new(Hasher::default());
        let account = create_account(&store, "acme").await;
        let catalogues = Catalogues::load(store.clone(), clock.clone()).await;
        let hour = SignedDuration::from_hours(1);
        let grant_settings = GrantSettings {
            issuer: "https://auth.example".to_owned(),
            resource: "https://mcp.example/mcp".to_owned(),
            code_lifetime: hour,
            access_lifetime: hour,
            refresh_lifetime: hour,
            grant_lifetime: SignedDuration::from_hours(24 * 180),
        };
        let documents = Arc::new(NoDocuments);
        Self {
            actor: Actor {
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
            grants: Grants::new(store.clone(), clock.clone(), documents, grant_settings),
            audit: Audit::new(store.clone(), clock),
            account,
            secrets: vec![PASSWORD.to_owned()],
            store,
        }
    }

    /// All entries of the audit log, newest first.
    pub(super) async fn log(&self) -> Vec<Change> {
        let cursor = Cursor {
            before: None,
            limit: 1000,
        };
        let found = self.audit.search(&AuditFilter::default(), cursor).await;
        let rows = found.expect("the store answers").rows.into_iter();
        rows.map(|entry| entry.change).collect()
    }

    async fn token(&mut self) -> TokenId {
        let input = token_input("backend");
        let created = self.accounts.create_token(&self.actor, self.account, input);
        let (id, secret) = created.await.expect("a token");
        self.secrets.push(secret.reveal().to_owned());
        id
    }

    pub(super) async fn sender(&self, called: &str) -> SenderId {
        new(&self.store, &name(self.account, called)).await
    }

    pub(super) async fn decide(&self, id: SenderId, step: Step) {
        let decided = self.senders.decide(&self.actor, id, step, Some("a reason"));
        decided.await.expect("the step is allowed");
    }

    async fn suspend(&self, suspended: bool) {
        let set = self.accounts.set_suspended(&self.actor, "acme", suspended);
        set.await.expect("the account exists");
    }

    async fn invite(&mut self, email: &str) -> String {
        let (email, account) = (email.parse().expect("an address"), Some(self.account));
        let invited = self
            .people
            .invite(&self.actor, email, Role::Member, account);
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

    /// Creates a person who can sign in.
    pub(super) async fn join(&mut self, email: &str) {
        let link = self.invite(email).await;
        self.accept(&link).await;
    }

    async fn reset(&mut self, email: &str) -> String {
        let person = self.person(email).await;
        let link = self.people.invite_again(&self.actor, &person).await;
        let link = link.expect("a link").link;
        self.secrets.push(link.clone());
        link
    }

    async fn open_session(&mut self, email: &str) -> String {
        let device = device();
        let context = sign_in_context(&device);
        let opened = self.sign_in.with_password(email, password(), &context);
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

    /// Turns a person's second factor on, unless it is on already.
    async fn with_second_factor(&mut self, person: &Person) {
        let factor = self.own.second_factor(person).await.expect("answers");
        if factor.active.is_none() {
            self.enable_second_factor(person).await;
        }
    }

    async fn enable_second_factor(&mut self, person: &Person) {
        let secret = self.own.offer(person).await.expect("it is off");
        let code = secret.code(SystemClock.now());
        let actor = actor(person);
        let codes = self.own.enable(&actor, person, password(), &code).await;
        self.add_codes(&codes.expect("the right code"));
        self.secrets.extend([secret.in_letters(), code]);
    }

    fn add_codes(&mut self, codes: &RecoveryCodes) {
        let codes = codes.iter().map(|code| code.reveal().to_owned());
        self.secrets.extend(codes);
    }

    async fn import_prices(&self) {
        let list =
            "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\nLatvia,LV,All,All,,,0.05\n";
        let (account, format) = (Some(self.account), Format::Csv);
        let plan = self
            .catalogues
            .plan_prices(Channel::Sms.into(), account, list, format);
        let plan = plan.expect("a good list");
        let imported = self.catalogues.import_prices(&self.actor, plan).await;
        imported.expect("there is no concurrent import");
    }

    async fn approve(&mut self, id: &str) {
        let mut request = request();
        request.expires = SystemClock.now() + SignedDuration::from_mins(10);
        let stored = self.store.create_request(&hash(id), &request, 10).await;
        assert!(stored.expect("answers"));
        let scopes = [Permission::SmsRates];
        let consent = Consent {
            by: &self.actor,
            account: self.account,
            person: None,
            scopes: &scopes,
            daily_cap: None,
        };
        let granted = self.grants.approve(id, consent);
        let address = granted
            .await
            .expect("answers")
            .expect("the request is open");
        let (_, code) = address.as_str().split_once("code=").expect("a code");
        let code = code.split('&').next().expect("its end");
        self.secrets.extend([id.to_owned(), code.to_owned()]);
    }

    /// Performs an action. Returns who did it, and whether it is about the account.
    pub(super) async fn perform(&mut self, action: Action) -> (&'static str, bool) {
        let actor = self.actor.clone();
        match action {
            Action::AccountCreate
            | Action::AccountCredit
            | Action::AccountRules
            | Action::AccountSuspend
            | Action::AccountResume
            | Action::TokenCreate
            | Action::TokenChange
            | Action::TokenRotate
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
            Action::AccountEnter
            | Action::AccountNotify
            | Action::AccountInbound
            | Action::NumberAdd
            | Action::NumberRemove
            | Action::SmppUserCreate
            | Action::SmppUserChange
            | Action::SmppUserRevoke => {
                let secrets = settings::change(&self.store, &actor, self.account, action).await;
                self.secrets.extend(secrets);
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
                self.import_reference_data().await;
                return (ANN, false);
            }
            Action::CallbackReplay => {
                let filter = CallbackFilter {
                    account: Some(self.account),
                    url_prefix: Some("https://one.example/secret/path".to_owned()),
                    ..CallbackFilter::default()
                };
                let replayed = self.callbacks.replay(&actor, &filter).await;
                replayed.expect("the store answers");
                self.secrets.push("secret/path".to_owned());
            }
            Action::OptOutAdd
            | Action::OptOutRemove
            | Action::OptOutImport
            | Action::BlockAdd
            | Action::BlockRemove
            | Action::TemplateSet
            | Action::TemplateRemove => {
                let performed = lists::perform(&self.store, &actor, self.account, action).await;
                self.secrets.push(performed.0);
                return (ANN, performed.1);
            }
            Action::SubjectExport | Action::SubjectErase => {
                self.perform_on_subject(action).await;
                return (ANN, false);
            }
            Action::GrantApprove => self.approve("ID of a request").await,
            Action::GrantRevoke => return (self.revoke_grant().await, false),
            _ => {
                self.perform_on_plan(action).await;
                return (ANN, false);
            }
        }
        (ANN, true)
    }

    async fn import_reference_data(&self) {
        let plan = self.catalogues.plan_reference(ReferenceFiles::embedded());
        let plan = plan.expect("good data");
        let imported = self.catalogues.import_reference(&self.actor, plan).await;
        imported.expect("there is no concurrent import");
    }

    /// Returns who did it.
    async fn revoke_grant(&mut self) -> &'static str {
        approve(&self.store, self.account, "granted").await;
        let redeemed = redeem(&self.store, "granted", "pair").await;
        redeemed.expect("a good code");
        let token = "refresh pair";
        let revoked = self.grants.revoke(FROM, token, "client").await;
        assert!(revoked.expect("answers"), "the token belongs to the client");
        self.secrets.push(token.to_owned());
        "client client"
    }

    /// Accounts and tokens.
    async fn perform_on_account(&mut self, action: Action) -> (&'static str, bool) {
        let actor = self.actor.clone();
        match action {
            Action::AccountCreate => {
                let created = self.accounts.create(&actor, "second", Money::ZERO).await;
                self.secrets.push(created.expect("a free name").1);
                return (ANN, false);
            }
            Action::AccountCredit => {
                let amount = Money::from_micros(5_000_000);
                let credited = self
                    .accounts
                    .credit(&actor, "acme", amount, Some("paid"), None);
                credited.await.expect("within bounds");
            }
            Action::AccountRules => {
                let change = |rules: &mut domain::billing::SpendingRules| {
                    rules.per_recipient_hour = Some(3);
                };
                let set = self.accounts.set_rules(&actor, "acme", change).await;
                set.expect("the account exists");
            }
            Action::AccountSuspend => self.suspend(true).await,
            Action::AccountResume => self.suspend(false).await,
            Action::TokenCreate => drop(self.token().await),
            Action::TokenChange => {
                let id = self.token().await;
                let input = token_input("frontend");
                let changed = self
                    .accounts
                    .change_token(&actor, self.account, id, input)
                    .await;
                changed.expect("the token exists");
            }
            Action::TokenRotate => {
                let id = self.token().await;
                let rotated = self
                    .accounts
                    .rotate_token(&actor, self.account, id, Some(SECRET_OVERLAP))
                    .await;
                let rotated = rotated.expect("the token exists");
                self.secrets.push(rotated.secret.reveal().to_owned());
            }
            Action::TokenRevoke => {
                let id = self.token().await;
                let revoked = self.accounts.revoke_token(&actor, None, id).await;
                revoked.expect("the token exists");
            }
            Action::SecretRotate => {
                let account = self.accounts.get("acme").await.expect("the account exists");
                let rotated = self
                    .accounts
                    .rotate_callback_secret(&actor, &account, SECRET_OVERLAP)
                    .await;
                self.secrets.push(rotated.expect("the account exists"));
            }
            Action::SecretShow => {
                let account = self.accounts.get("acme").await.expect("the account exists");
                let shown = self.accounts.callback_secret(&actor, &account).await;
                self.secrets.push(shown.expect("the store answers"));
            }
            other => panic!("{other:?} belongs elsewhere"),
        }
        (ANN, true)
    }

    /// People and invitations.
    async fn perform_on_person(&mut self, action: Action) -> (&'static str, bool) {
        let actor = self.actor.clone();
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
                let set =
                    self.people
                        .set_role(&actor, PeopleScope::Everybody, bob.id, role, account);
                set.await.expect("the person exists");
            }
            Action::PersonRemove => {
                self.join("carl@example.com").await;
                let carl = self.person("carl@example.com").await;
                let removed = self
                    .people
                    .remove(&actor, PeopleScope::Everybody, carl.id)
                    .await;
                removed.expect("the person exists");
            }
            Action::InvitationWithdraw => {
                self.invite("dora@example.com").await;
                let dora = "dora@example.com".parse().expect("an address");
                let withdrawn =
                    self.people
                        .withdraw_invitations(&actor, PeopleScope::Everybody, &dora, None);
                withdrawn.await.expect("the invitation exists");
            }
            other => panic!("{other:?} belongs elsewhere"),
        }
        (ANN, true)
    }
}
