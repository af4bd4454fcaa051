// The child gets the namespace and the labels of the object, and an owner reference, so that
// Kubernetes deletes it together with the object.
let child = cx.apply(child_for(cx.object())?).await?;
info!("the child {} is up to date", child.name_any());
{% if reports -%}
cx.set_result(&json!({"child": child.name_any()}))?;
{% endif -%}
Ok(())
