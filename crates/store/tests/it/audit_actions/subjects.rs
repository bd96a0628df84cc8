//! Exporting and erasing a number, for the audit log.

use std::sync::Arc;

use domain::Msisdn;
use engine::Subjects;
use engine::audit::Action;
use engine::clock::SystemClock;

use super::use_cases::UseCases;

impl UseCases {
    /// Exports or erases a number, which must not be in the log.
    pub(super) async fn perform_on_subject(&mut self, action: Action) {
        let number = Msisdn::parse("+37129990001").expect("a number");
        let (store, clock) = (self.store.clone(), Arc::new(SystemClock));
        let subjects = Subjects::new(store.clone(), store.clone(), store.clone(), store, clock);
        if action == Action::SubjectErase {
            let erased = subjects.erase(&self.actor, &number).await;
            erased.expect("the store answers");
        } else {
            let mut export = subjects
                .export(&self.actor, number)
                .await
                .expect("the store answers");
            let found = export.next().await.expect("the store answers");
            assert_eq!(found, Some(Vec::new()));
        }
        self.secrets.push("29990001".to_owned());
    }
}
