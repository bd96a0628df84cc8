//! Accounts, their balances and rules, and their tokens.

mod token_name;
mod tokens;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use domain::access::{AccessLimits, NotAnAccountName};
use domain::billing::{LedgerEntry, NotPaid, SpendingRules, day_of};
use domain::kill_point::{KillPoint, pass};
use domain::ports::{AccountRecord, AccountStore, Cursor, Imbalance, NewAccount, Page, StoreError};
use domain::{
    Access, AccountId, AccountName, AllowList, Clock, Money, Msisdn, Permissions, TokenId,
};
use jiff::SignedDuration;

pub use domain::ports::TokenInput;
pub use token_name::{MAX_TOKEN_NAME_CHARS, NotATokenName, check_token_name};
pub use tokens::{RotatedToken, rotated_expiry};

use crate::audit::{Action, Actor, Audit, RecordedChange};
use crate::entropy;

/// Why an account or a token was not created or changed.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The name is malformed.
    #[error(transparent)]
    Name(#[from] NotAnAccountName),
    /// The name belongs to another account.
    #[error("an account named '{0}' exists already")]
    Taken(String),
    /// There is no account of this name.
    #[error("there is no account named '{0}'; `switchboard account list` shows those there are")]
    UnknownAccount(String),
    /// Others kept changing the same account.
    #[error("others change account '{0}' at this moment; look at what they did and try again")]
    Overtaken(String),
    /// The balance would leave its range.
    #[error("{0} would take the balance beyond 1,000,000,000.00 on either side of zero")]
    Amount(Money),
    /// There is no such token, or it is revoked.
    #[error("there is no token {0}; `switchboard token list` shows those there are")]
    UnknownToken(TokenId),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Limits every balance, so that sums of balances fit both databases.
const MAX_BALANCE: Money = Money::from_micros(1_000_000_000 * 1_000_000);
/// How long a submitted form is recognised as a repetition.
const ONCE_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
const MIN_BALANCE: Money = Money::from_micros(-MAX_BALANCE.micros());

/// How often a change of the rules is retried when others change them at the same time.
const RULE_ATTEMPTS: u32 = 5;

/// Creates and changes accounts and tokens.
pub struct Accounts {
    store: Arc<dyn AccountStore>,
    clock: Arc<dyn Clock>,
    audit: Audit,
}

impl Accounts {
    pub fn new(store: Arc<dyn AccountStore>, clock: Arc<dyn Clock>) -> Self {
        let audit = Audit::new(store.clone(), clock.clone());
        Self {
            store,
            clock,
            audit,
        }
    }

    /// Creates an account. Returns its callback secret, too.
    pub async fn create(
        &self,
        by: &Actor,
        name: &str,
        balance: Money,
    ) -> Result<(AccountRecord, String), AccountError> {
        let account = NewAccount {
            name: name.parse::<AccountName>()?,
            balance,
            callback_secret: callback_secret(),
            created_at: self.clock.now(),
        };
        let (subject, detail) = (format!("account {name}"), format!("balance {balance}"));
        let recorded = self
            .audit
            .record(by, None, Action::AccountCreate, subject, detail)
            .await?;
        let created = match self.store.create_account(&account).await {
            Ok(None) => Err(AccountError::Taken(name.to_owned())),
            Ok(Some(id)) => Ok(id),
            Err(error) => Err(error.into()),
        };
        let id = recorded.done(created).await?;
        let record = AccountRecord {
            id,
            name: name.to_owned(),
            balance,
            rules: SpendingRules::default(),
            suspended: false,
            created_at: account.created_at,
        };
        Ok((record, account.callback_secret))
    }

    pub async fn get(&self, name: &str) -> Result<AccountRecord, AccountError> {
        self.store
            .find_account(name)
            .await?
            .ok_or_else(|| AccountError::UnknownAccount(name.to_owned()))
    }

    /// Reads the account from the store.
    pub async fn find_by_id(&self, id: AccountId) -> Result<Option<AccountRecord>, StoreError> {
        self.store.find_account_by_id(id).await
    }

    /// How much an account may still spend today (UTC) under its daily cap; `None` if it has no cap.
    pub async fn left_today(&self, id: AccountId) -> Result<Option<Money>, StoreError> {
        let funds = self.store.find_funds(id).await?;
        let today = day_of(self.clock.now());
        Ok(funds.and_then(|funds| funds.left_on(today)))
    }

    /// Whether the account, and the client that acts for it, could pay for messages to these recipients now.
    pub async fn check_payment(
        &self,
        access: &Access,
        recipients: &[Msisdn],
        cost: Money,
    ) -> Result<Result<(), NotPaid>, StoreError> {
        let (id, now) = (access.account, self.clock.now());
        if let Some(Err(above)) = access.grant_cap.map(|cap| cap.check_alone(cost)) {
            return Ok(Err(above));
        }
        if let Some(left) = self.left_of_grant(access).await?
            && cost > left
        {
            return Ok(Err(NotPaid::GrantCap { cost, left }));
        }
        let mut funds = self.store.find_funds(id).await?.unwrap_or_default();
        if let Some(limit) = funds.per_recipient_hour
            && let Some(to) = self.store.find_flooded(id, recipients, limit, now).await?
        {
            return Ok(Err(NotPaid::RecipientHour { to, limit }));
        }
        Ok(funds.charge(cost, day_of(now)))
    }

    /// What the client of this token may still spend today; `None` without a cap.
    pub async fn left_of_grant(&self, access: &Access) -> Result<Option<Money>, StoreError> {
        let Some(cap) = access.grant_cap else {
            return Ok(None);
        };
        let today = day_of(self.clock.now());
        let spent = self.store.find_grant_spending(cap.grant, today).await?;
        Ok(Some(cap.left(spent)))
    }

    /// The access of a person who acts for an account in the dashboard: all permissions, within the account's rules.
    pub fn access_of(account: &AccountRecord, person: &str) -> Access {
        Access {
            name: person.to_owned(),
            account: account.id,
            account_name: account.name.clone(),
            suspended: account.suspended,
            countries: account.rules.countries.clone(),
            approved_senders_only: account.rules.approved_senders_only,
            requests_per_second: account.rules.requests_per_second,
            permissions: Permissions::all(),
            allow: AllowList::default(),
            expires: None,
            grant_cap: None,
            limits: AccessLimits::default(),
        }
    }

    /// All accounts.
    pub async fn list(&self) -> Result<Vec<AccountRecord>, StoreError> {
        self.store.list_accounts().await
    }

    /// Accounts, newest first; `name` limits them to those whose name contains it.
    pub async fn search(
        &self,
        name: Option<&str>,
        cursor: Cursor<AccountId>,
    ) -> Result<Page<AccountRecord, AccountId>, StoreError> {
        self.store.search_accounts(name, cursor).await
    }

    /// The names of these accounts.
    pub async fn names(
        &self,
        ids: impl IntoIterator<Item = AccountId>,
    ) -> Result<HashMap<AccountId, String>, StoreError> {
        let ids: BTreeSet<AccountId> = ids.into_iter().collect();
        let ids: Vec<AccountId> = ids.into_iter().collect();
        Ok(self
            .store
            .list_account_names(&ids)
            .await?
            .into_iter()
            .collect())
    }

    /// Adds an amount to a balance, or takes it off if it is negative, and returns the new balance. A second call with
    /// the same `once` changes nothing.
    pub async fn credit(
        &self,
        by: &Actor,
        name: &str,
        amount: Money,
        note: Option<&str>,
        once: Option<&str>,
    ) -> Result<Money, AccountError> {
        let account = self.get(name).await?;
        if let Some(once) = once {
            let key = domain::sha256(&[b"credit\n", once.as_bytes()]);
            let expires = self.clock.now() + ONCE_LIFETIME;
            if !self.store.use_once(account.id, &key, expires).await? {
                return Ok(account.balance);
            }
        }
        let detail = match note {
            Some(note) => format!("{amount}, {note}"),
            None => amount.to_string(),
        };
        let recorded = self
            .record(by, &account, Action::AccountCredit, detail)
            .await?;
        recorded
            .done(self.change_balance(&account, amount, note).await)
            .await
    }

    async fn change_balance(
        &self,
        account: &AccountRecord,
        amount: Money,
        note: Option<&str>,
    ) -> Result<Money, AccountError> {
        if !(MIN_BALANCE..=MAX_BALANCE).contains(&account.balance.plus(amount)) {
            return Err(AccountError::Amount(amount));
        }
        let now = self.clock.now();
        let balance = self.store.credit(account.id, amount, note, now).await?;
        pass(KillPoint::CreditCommitted);
        balance.ok_or_else(|| AccountError::UnknownAccount(account.name.clone()))
    }

    /// Changes the spending rules of an account and returns them. Two concurrent changes do not undo each other.
    pub async fn set_rules(
        &self,
        by: &Actor,
        name: &str,
        change: impl Fn(&mut SpendingRules),
    ) -> Result<SpendingRules, AccountError> {
        for _ in 0..RULE_ATTEMPTS {
            let account = self.get(name).await?;
            let mut rules = account.rules.clone();
            change(&mut rules);
            let detail = rules.changes_since(&account.rules);
            let recorded = self
                .record(by, &account, Action::AccountRules, detail)
                .await?;
            let before = Some(&account.rules);
            let outcome = match self.store.set_rules(account.id, before, &rules).await {
                Ok(true) => Ok(rules),
                Ok(false) => Err(AccountError::Overtaken(name.to_owned())),
                Err(error) => Err(error.into()),
            };
            match recorded.done(outcome).await {
                Err(AccountError::Overtaken(_)) => {}
                outcome => return outcome,
            }
        }
        Err(AccountError::Overtaken(name.to_owned()))
    }

    /// The newest ledger entries, newest first.
    pub async fn ledger(&self, name: &str, limit: u32) -> Result<Vec<LedgerEntry>, AccountError> {
        let account = self.get(name).await?;
        Ok(self.store.list_ledger(account.id, None, limit).await?)
    }

    /// A page of the ledger, newest entries first.
    pub async fn ledger_page(
        &self,
        account: AccountId,
        cursor: Cursor<u64>,
    ) -> Result<Vec<LedgerEntry>, StoreError> {
        let Cursor { before, limit } = cursor;
        self.store.list_ledger(account, before, limit).await
    }

    /// The accounts whose balance is not the sum of their ledger. There must never be one.
    pub async fn check_ledger(&self) -> Result<Vec<Imbalance>, StoreError> {
        self.store.check_ledger().await
    }

    /// Suspends or resumes an account.
    pub async fn set_suspended(
        &self,
        by: &Actor,
        name: &str,
        suspended: bool,
    ) -> Result<(), AccountError> {
        let account = self.get(name).await?;
        let action = if suspended {
            Action::AccountSuspend
        } else {
            Action::AccountResume
        };
        let recorded = self.record(by, &account, action, String::new()).await?;
        let is_set = self.store.set_suspended(name, suspended).await;
        recorded.done(require_changed(is_set, name)).await
    }

    async fn record(
        &self,
        by: &Actor,
        account: &AccountRecord,
        action: Action,
        detail: String,
    ) -> Result<RecordedChange<'_>, StoreError> {
        let subject = format!("account {} ({})", account.id, account.name);
        let account = Some(account.id);
        self.audit
            .record(by, account, action, subject, detail)
            .await
    }

    /// The secret that signs an account's callbacks, to show it to a person.
    pub async fn callback_secret(
        &self,
        by: &Actor,
        account: &AccountRecord,
    ) -> Result<String, StoreError> {
        let recorded = self
            .record(by, account, Action::SecretShow, String::new())
            .await?;
        let secrets = self.store.find_signing_secrets(account.id).await;
        let secret = secrets.map(|secrets| secrets.map_or_else(String::new, |two| two.newest));
        recorded.done(secret).await
    }

    /// Replaces the secret that signs an account's callbacks and returns the new one. The previous one also signs for
    /// `overlap`, so that receivers have time to change.
    pub async fn rotate_callback_secret(
        &self,
        by: &Actor,
        account: &AccountRecord,
        overlap: SignedDuration,
    ) -> Result<String, AccountError> {
        let until = self.clock.now() + overlap;
        let detail = format!("the previous one also signs until {until}");
        let recorded = self
            .record(by, account, Action::SecretRotate, detail)
            .await?;
        let secret = callback_secret();
        let id = account.id;
        let rotated = match self.store.replace_signing_secret(id, &secret, until).await {
            Ok(true) => Ok(secret),
            Ok(false) => Err(AccountError::UnknownAccount(account.name.clone())),
            Err(error) => Err(error.into()),
        };
        recorded.done(rotated).await
    }
}

/// Turns "nothing changed" into an error: the account is gone.
fn require_changed(changed: Result<bool, StoreError>, name: &str) -> Result<(), AccountError> {
    if changed? {
        Ok(())
    } else {
        Err(AccountError::UnknownAccount(name.to_owned()))
    }
}

/// The default overlap of a new callback secret with the previous one.
pub const SECRET_OVERLAP: SignedDuration = SignedDuration::from_hours(24);

/// The secret has the form of the Standard Webhooks specification.
fn callback_secret() -> String {
    let key = base64::engine::general_purpose::STANDARD.encode(entropy::bytes::<24>());
    format!("whsec_{key}")
}
