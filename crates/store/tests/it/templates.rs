//! Texts that accounts saved.

use std::sync::Arc;

use domain::ports::Store;
use domain::template::TextTemplate;

use super::sample::create_account;

on_both_stores!(a_template_is_saved_replaced_and_removed);

async fn a_template_is_saved_replaced_and_removed(store: Arc<dyn Store>) {
    let acme = create_account(&store, "acme").await;
    let other = create_account(&store, "other").await;
    let template = |name, text| TextTemplate::new(name, text).expect("a template");
    let list = |account| {
        let store = store.clone();
        async move {
            let listed = store.list_templates(account).await;
            listed.expect("the store answers")
        }
    };
    let (a, b) = (template("a", "Hello {name}\n"), template("B", "Good bye"));
    for saved in [&a, &template("B", "Bye"), &b] {
        let set = store.set_template(acme, saved).await;
        set.expect("the store answers");
    }
    assert_eq!(list(acme).await, [b.clone(), a.clone()]);
    assert_eq!(list(other).await, []);
    for (account, name, was_there) in [
        (other, "a", false),
        (acme, "A", false),
        (acme, "a", true),
        (acme, "a", false),
    ] {
        let removed = store.remove_template(account, name).await;
        assert_eq!(removed.expect("the store answers"), was_there, "{name}");
    }
    assert_eq!(list(acme).await, [b]);
}
