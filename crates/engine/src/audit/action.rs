//! What is noted down, by name.

/// Something that people do and that is noted down. This list is the whole of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// An account was made.
    AccountCreate,
    /// Money was added to an account, or taken off.
    AccountCredit,
    /// What an account may spend was changed.
    AccountRules,
    /// An account was suspended.
    AccountSuspend,
    /// An account goes on.
    AccountResume,
    /// A token was made.
    TokenCreate,
    /// A token was revoked.
    TokenRevoke,
    /// The secret that signs an account's callbacks was shown.
    SecretShow,
    /// An account got a new secret for its callbacks.
    SecretRotate,
    /// Somebody was invited.
    PersonInvite,
    /// Somebody accepted an invitation, or the operator of the first start said who they are.
    PersonJoin,
    /// A link was made by which a person sets a new password.
    PersonReset,
    /// A person has a new password.
    PersonPassword,
    /// What a person may do was changed.
    PersonRole,
    /// A person was removed.
    PersonRemove,
    /// An invitation was taken back.
    InvitationWithdraw,
    /// A one-time sign-in link was made.
    LinkCreate,
    /// Somebody signed in.
    SessionOpen,
    /// Somebody signed out.
    SessionEnd,
    /// Somebody signed out everywhere.
    SessionEndAll,
    /// Somebody turned their second factor on.
    SecondFactorEnable,
    /// Somebody turned their second factor off.
    SecondFactorDisable,
    /// Somebody got new recovery codes.
    SecondFactorCodes,
    /// An operator took somebody's second factor away.
    SecondFactorRemove,
    /// A sender was approved.
    SenderApprove,
    /// A sender was rejected.
    SenderReject,
    /// An approval of a sender was taken back.
    SenderRevoke,
    /// A price list was imported.
    PricesImport,
    /// Reference data was imported.
    ReferenceImport,
    /// Callbacks were sent again.
    CallbackReplay,
    /// Somebody allowed a client to act for an account.
    GrantApprove,
    /// A client gave back what it was granted, or somebody took it back.
    GrantRevoke,
}

/// What is added to an action's name when it was refused.
pub const REFUSED: &str = ".refused";

impl Action {
    /// Every action, in the order of the documentation.
    pub const ALL: [Self; 32] = [
        Self::AccountCreate,
        Self::AccountCredit,
        Self::AccountRules,
        Self::AccountSuspend,
        Self::AccountResume,
        Self::TokenCreate,
        Self::TokenRevoke,
        Self::SecretShow,
        Self::SecretRotate,
        Self::PersonInvite,
        Self::PersonJoin,
        Self::PersonReset,
        Self::PersonPassword,
        Self::PersonRole,
        Self::PersonRemove,
        Self::InvitationWithdraw,
        Self::LinkCreate,
        Self::SessionOpen,
        Self::SessionEnd,
        Self::SessionEndAll,
        Self::SecondFactorEnable,
        Self::SecondFactorDisable,
        Self::SecondFactorCodes,
        Self::SecondFactorRemove,
        Self::SenderApprove,
        Self::SenderReject,
        Self::SenderRevoke,
        Self::PricesImport,
        Self::ReferenceImport,
        Self::CallbackReplay,
        Self::GrantApprove,
        Self::GrantRevoke,
    ];

    /// The name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccountCreate => "account.create",
            Self::AccountCredit => "account.credit",
            Self::AccountRules => "account.rules",
            Self::AccountSuspend => "account.suspend",
            Self::AccountResume => "account.resume",
            Self::TokenCreate => "token.create",
            Self::TokenRevoke => "token.revoke",
            Self::SecretShow => "secret.show",
            Self::SecretRotate => "secret.rotate",
            Self::PersonInvite => "person.invite",
            Self::PersonJoin => "person.join",
            Self::PersonReset => "person.reset",
            Self::PersonPassword => "person.password",
            Self::PersonRole => "person.role",
            Self::PersonRemove => "person.remove",
            Self::InvitationWithdraw => "invitation.withdraw",
            Self::LinkCreate => "link.create",
            Self::SessionOpen => "session.open",
            Self::SessionEnd => "session.end",
            Self::SessionEndAll => "session.end_all",
            Self::SecondFactorEnable => "second_factor.enable",
            Self::SecondFactorDisable => "second_factor.disable",
            Self::SecondFactorCodes => "second_factor.codes",
            Self::SecondFactorRemove => "second_factor.remove",
            Self::SenderApprove => "sender.approve",
            Self::SenderReject => "sender.reject",
            Self::SenderRevoke => "sender.revoke",
            Self::PricesImport => "prices.import",
            Self::ReferenceImport => "reference.import",
            Self::CallbackReplay => "callback.replay",
            Self::GrantApprove => "grant.approve",
            Self::GrantRevoke => "grant.revoke",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_action_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = Action::ALL.into_iter().map(Action::name).collect();
        assert_eq!(names.len(), Action::ALL.len());
        for name in names {
            let (subject, verb) = name.split_once('.').expect("a subject and a verb");
            let plain = |word: &str| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            assert!(plain(subject) && plain(verb), "{name}");
        }
    }
}
