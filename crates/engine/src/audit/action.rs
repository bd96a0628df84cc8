//! The actions that the audit log records.

/// Something that people do and that the audit log records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// An account was created.
    AccountCreate,
    /// Money was added to or taken from a balance.
    AccountCredit,
    /// The spending rules of an account were changed.
    AccountRules,
    /// An account was suspended.
    AccountSuspend,
    /// A suspended account was resumed.
    AccountResume,
    /// An operator began to act for an account to which they do not belong.
    AccountEnter,
    /// Where an account is notified was changed.
    AccountNotify,
    /// Where messages to numbers of an account are sent was changed.
    AccountInbound,
    /// A number was given to an account.
    NumberAdd,
    /// A number was taken from an account.
    NumberRemove,
    /// A token was created.
    TokenCreate,
    /// The name, permissions, addresses or expiry of a token was changed.
    TokenChange,
    /// A token was replaced by one with a new secret.
    TokenRotate,
    /// A token was revoked.
    TokenRevoke,
    /// An SMPP user was created.
    SmppUserCreate,
    /// Options of an SMPP user were changed.
    SmppUserChange,
    /// An SMPP user was revoked.
    SmppUserRevoke,
    /// The secret that signs an account's callbacks was shown.
    SecretShow,
    /// The secret that signs an account's callbacks was replaced.
    SecretRotate,
    /// A person was invited.
    PersonInvite,
    /// A person accepted an invitation, or the operator of the first start entered an email address.
    PersonJoin,
    /// A password reset link was created.
    PersonReset,
    /// A person set a new password.
    PersonPassword,
    /// The role of a person was changed.
    PersonRole,
    /// A person was removed.
    PersonRemove,
    /// An invitation was withdrawn.
    InvitationWithdraw,
    /// A one-time sign-in link was created.
    LinkCreate,
    /// A person signed in.
    SessionOpen,
    /// A person signed out.
    SessionEnd,
    /// A person signed out of all sessions.
    SessionEndAll,
    /// A person turned their second factor on.
    SecondFactorEnable,
    /// A person turned their second factor off.
    SecondFactorDisable,
    /// A person got new recovery codes.
    SecondFactorCodes,
    /// An operator removed the second factor of a person.
    SecondFactorRemove,
    /// A sender ID was approved.
    SenderApprove,
    /// A sender ID was rejected.
    SenderReject,
    /// The approval of a sender ID was revoked.
    SenderRevoke,
    /// A price list was imported.
    PricesImport,
    /// Reference data was imported.
    ReferenceImport,
    /// Callbacks were replayed.
    CallbackReplay,
    /// A recipient was put on an opt-out list.
    OptOutAdd,
    /// A recipient was taken off an opt-out list.
    OptOutRemove,
    /// Entries of an opt-out list were imported.
    OptOutImport,
    /// A rule was added to the block list.
    BlockAdd,
    /// A rule was removed from the block list.
    BlockRemove,
    /// A saved text was added or changed.
    TemplateSet,
    /// A saved text was removed.
    TemplateRemove,
    /// A carrier in the database was added or changed.
    CarrierSet,
    /// A carrier was removed from the database.
    CarrierRemove,
    /// An earlier version of the carriers and routes in the database was restored.
    CarrierUndo,
    /// A route in the database was added or changed.
    RouteSet,
    /// A route was removed from the database.
    RouteRemove,
    /// What is stored about a number was exported.
    SubjectExport,
    /// A number was erased from messages.
    SubjectErase,
    /// A person allowed a client to act for an account.
    GrantApprove,
    /// A grant was revoked, by its client or by a person.
    GrantRevoke,
}

/// Appended to the name of an action that was refused.
pub const REFUSED: &str = ".refused";

impl Action {
    /// All actions, in the order of the documentation.
    pub const ALL: [Self; 56] = [
        Self::AccountCreate,
        Self::AccountCredit,
        Self::AccountRules,
        Self::AccountSuspend,
        Self::AccountResume,
        Self::AccountEnter,
        Self::AccountNotify,
        Self::AccountInbound,
        Self::NumberAdd,
        Self::NumberRemove,
        Self::TokenCreate,
        Self::TokenChange,
        Self::TokenRotate,
        Self::TokenRevoke,
        Self::SmppUserCreate,
        Self::SmppUserChange,
        Self::SmppUserRevoke,
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
        Self::OptOutAdd,
        Self::OptOutRemove,
        Self::OptOutImport,
        Self::BlockAdd,
        Self::BlockRemove,
        Self::TemplateSet,
        Self::TemplateRemove,
        Self::CarrierSet,
        Self::CarrierRemove,
        Self::CarrierUndo,
        Self::RouteSet,
        Self::RouteRemove,
        Self::SubjectExport,
        Self::SubjectErase,
        Self::GrantApprove,
        Self::GrantRevoke,
    ];

    /// The name in the audit log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccountCreate => "account.create",
            Self::AccountCredit => "account.credit",
            Self::AccountRules => "account.rules",
            Self::AccountSuspend => "account.suspend",
            Self::AccountResume => "account.resume",
            Self::AccountEnter => "account.enter",
            Self::AccountNotify => "account.notify",
            Self::AccountInbound => "account.inbound",
            Self::NumberAdd => "number.add",
            Self::NumberRemove => "number.remove",
            Self::TokenCreate => "token.create",
            Self::TokenChange => "token.change",
            Self::TokenRotate => "token.rotate",
            Self::TokenRevoke => "token.revoke",
            Self::SmppUserCreate => "smpp_user.create",
            Self::SmppUserChange => "smpp_user.change",
            Self::SmppUserRevoke => "smpp_user.revoke",
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
            Self::OptOutAdd => "opt_out.add",
            Self::OptOutRemove => "opt_out.remove",
            Self::OptOutImport => "opt_out.import",
            Self::BlockAdd => "block.add",
            Self::BlockRemove => "block.remove",
            Self::TemplateSet => "template.set",
            Self::TemplateRemove => "template.remove",
            Self::CarrierSet => "carrier.set",
            Self::CarrierRemove => "carrier.remove",
            Self::CarrierUndo => "carrier.undo",
            Self::RouteSet => "route.set",
            Self::RouteRemove => "route.remove",
            Self::SubjectExport => "subject.export",
            Self::SubjectErase => "subject.erase",
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
