//! Handlers for KopfExample objects.

use std::collections::BTreeSet;

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::indices::{ByLabel, IsRunning};
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called for a KopfExample every 5s.
    async fn intervalled(&self, cx: &mut TimerContext<KopfExample>) -> HandlerResult {
        let running = running_in(&cx.index(IsRunning), cx.namespace().unwrap_or_default());
        info!("running here: {running:?}");

        let by_label = cx.index(ByLabel);
        let labels = cx.object().labels().clone().into_iter();
        let alike: BTreeSet<String> = labels.flat_map(|label| by_label.get(&label)).collect();
        info!("with one of the same labels: {alike:?}");
        let status = json!({"running-pods": running, "alike": alike});
        cx.patch().status(status);
        Ok(())
    }
}

/// The names of the Pods that are running in a namespace.
fn running_in(index: &IndexView<IsRunning>, namespace: &str) -> BTreeSet<String> {
    let index = index.read();
    let here = index.iter().filter(|((place, _), _)| place == namespace);
    here.filter_map(|((_, name), mut values)| values.any(|it| *it).then(|| name.clone()))
        .collect()
}
