//! Handlers for KopfExample objects.

use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers, KopfExampleReconcile};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created, changed or found at the start, and when its ConfigMap
    /// is changed or gone.
    async fn reconcile(&self, cx: &mut KopfExampleReconcile) -> HandlerResult {
        // The ConfigMap gets the name, the namespace and the labels of the object. Kubernetes deletes it
        // together with the object, and if it is changed or deleted by hand, this is called again.
        cx.apply(child_for(cx.object())?).await?;
        Ok(())
    }
}

/// The ConfigMap of an object, with its spec.
fn child_for(object: &KopfExample) -> HandlerResult<ConfigMap> {
    let spec = serde_json::to_string(&object.spec)?;
    Ok(ConfigMap {
        data: Some([("spec.json".to_owned(), spec)].into()),
        ..Default::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_the_spec_of_its_object() {
        let object = json!({
            "metadata": {
                "name": "one"
            },
            "spec": {}
        });
        let child = child_for(&serde_json::from_value(object).unwrap()).unwrap();
        assert!(child.data.unwrap().contains_key("spec.json"));
    }
}
