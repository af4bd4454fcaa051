//! The identities of objects.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use kopf_core::object::ObjectView;
use kopf_core::watch::known_objects::WatchedKey;
use serde_json::{Value, json};

thread_local! {
    static UIDS: RefCell<HashMap<String, &'static str>> = RefCell::default();
}

/// The identity of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SimulatedKey {
    pub(crate) uid: &'static str,
    pub(crate) name: Arc<str>,
}

// === impl SimulatedKey ===

impl SimulatedKey {
    pub(crate) fn of(object: &Value) -> Option<Self> {
        let view = ObjectView::new(object);
        Some(Self {
            uid: interned(view.uid()?),
            name: view.name()?.into(),
        })
    }
}

impl WatchedKey for SimulatedKey {
    type Text = Arc<Value>;

    fn uid(&self) -> &str {
        self.uid
    }

    fn stub(&self) -> Arc<Value> {
        Arc::new(json!({"metadata": {"name": *self.name, "uid": self.uid}}))
    }
}

/// A uid that lives as long as the program: machines borrow it. All histories use the same ones.
fn interned(uid: &str) -> &'static str {
    UIDS.with_borrow_mut(|uids| match uids.get(uid) {
        Some(known) => known,
        None => {
            let kept: &'static str = Box::leak(uid.to_owned().into_boxed_str());
            uids.insert(uid.to_owned(), kept);
            kept
        }
    })
}
