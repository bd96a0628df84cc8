//! Changing the carriers and routes in the database, for the audit log.

use std::sync::Arc;

use domain::ports::CatalogueKind;
use engine::Catalogues;
use engine::audit::Action;
use engine::catalogue::plans::NewPlan;
use engine::clock::SystemClock;

use super::use_cases::UseCases;

/// In the content of each version.
const SECRET: &str = "hunter2 of a carrier";

impl UseCases {
    /// Stores a version with a secret.
    pub(super) async fn perform_on_plan(&mut self, action: Action) {
        let catalogues = Catalogues::load(self.store.clone(), Arc::new(SystemClock)).await;
        let catalogues = catalogues.expect("the store answers");
        let plan = NewPlan {
            action,
            subject: "carrier alpha",
            detail: "password",
            previous: catalogues.live().version(CatalogueKind::Plan),
            content: SECRET,
            rows: 1,
        };
        let version = catalogues.publish_plan(&self.actor, plan).await;
        let version = version.expect("the store answers");
        let content = catalogues.version(CatalogueKind::Plan, version).await;
        assert_eq!(content.expect("the store answers").as_deref(), Some(SECRET));
        self.secrets.push(SECRET.to_owned());
    }
}
