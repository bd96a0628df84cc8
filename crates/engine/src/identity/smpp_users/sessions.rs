//! What nodes report about their sessions, and reading it.

use domain::ports::StoreError;
use domain::smpp_user::SmppSession;
use domain::{NodeId, SmppUserId};

use super::{SmppUserRegistry, SmppUsers};

impl SmppUsers {
    /// The node that reports are stored for. It changes if the node was taken for dead; then report all sessions again.
    pub fn node(&self) -> NodeId {
        self.node.id()
    }

    /// Stores reports about sessions of this node, and deletes those of sessions that ended.
    pub async fn report_sessions(
        &self,
        node: NodeId,
        changed: &[SmppSession],
        ended: &[u64],
    ) -> Result<(), StoreError> {
        if changed.is_empty() && ended.is_empty() {
            return Ok(());
        }
        self.store.report_smpp_sessions(node, changed, ended).await
    }
}

impl SmppUserRegistry {
    /// The sessions of a user over all nodes, as last reported, sorted by node and number.
    pub async fn list_sessions(
        &self,
        user: SmppUserId,
    ) -> Result<Vec<(NodeId, SmppSession)>, StoreError> {
        self.store.list_smpp_sessions(user).await
    }
}
