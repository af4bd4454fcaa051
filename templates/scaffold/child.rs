// The ConfigMap gets the name, the namespace and the labels of the object. Kubernetes deletes it
// together with the object, and if it is changed or deleted by hand, this is called again.
cx.apply(child_for(cx.object())?).await?;
{% if reports -%}
cx.set_condition("Ready", true, "Applied", "the ConfigMap is as it should be");
{% endif -%}
Ok(())
