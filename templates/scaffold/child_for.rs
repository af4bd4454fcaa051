
/// The ConfigMap of an object, with its spec.
{% for line in signature -%}
{{ line }}
{% endfor %}    let spec = {{ spec }};
    Ok({{ config_map }} {
        data: Some([("spec.json".to_owned(), spec)].into()),
        ..Default::default()
    })
}
