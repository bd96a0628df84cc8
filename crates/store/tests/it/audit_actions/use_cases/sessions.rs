//! Links, sessions and second factors.

use domain::Person;
use engine::audit::Action;

use super::{ANN, BOB, UseCases};
use crate::audit_actions::{FROM, actor, password};

impl UseCases {
    /// Links, sessions and second factors.
    pub(super) async fn perform_on_session(&mut self, action: Action) -> (&'static str, bool) {
        let actor = self.actor.clone();
        match action {
            Action::LinkCreate => {
                let link = self.sign_in.create_link(&actor, self.account).await;
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
                let removed = self.people.remove_second_factor(&actor, bob.id).await;
                removed.expect("it is on");
            }
            other => panic!("{other:?} belongs elsewhere"),
        }
        (ANN, true)
    }

    /// What people do with their own sessions and second factor.
    async fn perform_own(&mut self, action: Action, person: &Person) {
        let actor = actor(person);
        match action {
            Action::SessionEndAll => {
                let ended = self.own.end_sessions(&actor, person).await;
                assert!(ended.expect("answers") > 0, "there were open sessions");
            }
            Action::SecondFactorEnable => self.enable_second_factor(person).await,
            Action::SecondFactorDisable => {
                self.with_second_factor(person).await;
                let disabled = self.own.disable(&actor, person, password()).await;
                disabled.expect("the right password");
            }
            Action::SecondFactorCodes => {
                self.with_second_factor(person).await;
                let codes = self.own.renew_codes(&actor, person, password()).await;
                self.add_codes(&codes.expect("the right password"));
            }
            other => panic!("{other:?} belongs elsewhere"),
        }
    }
}
