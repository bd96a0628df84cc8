//! Changes opt-out lists, the block list and saved texts.

use std::sync::Arc;

use domain::block::{BlockKind, BlockRule};
use domain::opt_out::{OptOutKey, Via};
use domain::ports::Store;
use domain::template::TextTemplate;
use domain::{AccountId, Msisdn};
use engine::audit::Action;
use engine::clock::SystemClock;
use engine::{Actor, Blocks, OptOuts, Templates};

/// The log must not have the whole number.
const NUMBER: &str = "+37120000001";

/// Performs an action. Returns what must not be in the log, and whether it is about the account.
pub(super) async fn perform(
    store: &Arc<dyn Store>,
    by: &Actor,
    account: AccountId,
    action: Action,
) -> (String, bool) {
    let clock = Arc::new(SystemClock);
    let opt_outs = OptOuts::new(store.clone(), store.clone(), clock.clone(), None);
    let blocks = Blocks::new(store.clone(), store.clone(), clock.clone(), None);
    let templates = Templates::new(store.clone(), store.clone(), clock);
    let key = OptOutKey {
        recipient: Msisdn::parse(NUMBER).expect("a number"),
        sender: None,
    };
    let rule = BlockRule::parse(BlockKind::Word, "jackpot").expect("a rule");
    let is_of_account = match action {
        Action::OptOutAdd => {
            let added = opt_outs.add(by, account, key, Via::Dashboard).await;
            added.expect("the store answers");
            true
        }
        Action::OptOutRemove => {
            let removed = opt_outs.remove(by, account, &key).await;
            assert!(removed.expect("the store answers"), "it was added before");
            true
        }
        Action::OptOutImport => {
            let begun = opt_outs.begin_import(by, account, 1).await;
            begun.expect("the store answers");
            let added = opt_outs.import(account, &[key]).await;
            assert_eq!(added.expect("the store answers"), 1);
            true
        }
        Action::BlockAdd => {
            let added = blocks.add(by, &rule).await;
            assert!(added.expect("the store answers"), "it is new");
            false
        }
        Action::BlockRemove => {
            let removed = blocks.remove(by, &rule).await;
            assert!(removed.expect("the store answers"), "it was added before");
            false
        }
        Action::TemplateSet => {
            let template = TextTemplate::new("Order", NUMBER).expect("a template");
            let set = templates.set(by, account, &template).await;
            set.expect("there are few");
            true
        }
        Action::TemplateRemove => {
            let removed = templates.remove(by, account, "Order").await;
            assert!(removed.expect("the store answers"), "it was saved before");
            true
        }
        other => panic!("{other:?} belongs elsewhere"),
    };
    (NUMBER.to_owned(), is_of_account)
}
