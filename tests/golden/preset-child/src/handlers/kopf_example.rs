//! Handlers for KopfExample objects.

use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created, is changed or already exists when the operator starts.
    async fn sync_child(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        // The child gets the namespace and the labels of the object, and an owner reference, so that
        // Kubernetes deletes it together with the object.
        let child = cx.apply(child_for(cx.object())?).await?;
        info!("the child {} is up to date", child.name_any());
        cx.set_result(&json!({"child": child.name_any()}))?;
        Ok(())
    }
}

/// The ConfigMap of an object, with its spec.
fn child_for(object: &KopfExample) -> HandlerResult<ConfigMap> {
    let name = format!("kopfexample-{}", object.name_any());
    let mut child = ConfigMap::default();
    child.metadata.name = Some(name);
    child.data = Some([("spec.json".to_owned(), serde_json::to_string(&object.spec)?)].into());
    Ok(child)
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
