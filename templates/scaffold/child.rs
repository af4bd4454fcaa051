{% for line in name -%}
{{ line }}
{% endfor -%}
let mut child: {{ config_map }} = serde_json::from_value(json!({
    "metadata": {"name": name},
    "data": {"spec.json": {{ spec }}},
}))?;

// The child gets the namespace and the labels of the object, and an owner reference, so that
// Kubernetes deletes it together with the object.
cx.adopt(&mut child)?;
let children = cx.api::<{{ config_map }}>();
let apply = {{ patch_params }}::apply(env!("CARGO_PKG_NAME")).force();
let patch = {{ patch }}::Apply(child);
let child = children.patch(&name, &apply, &patch).await?;
info!("the child {} is up to date", child.name_any());
{% if reports -%}
cx.set_result(&json!({"child": child.name_any()}))?;
{% endif -%}
Ok(())
