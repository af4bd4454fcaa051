
/// The ConfigMap of an object, with its spec.
{% for line in signature -%}
{{ line }}
{% endfor -%}
{% for line in name %}    {{ line }}
{% endfor %}    let mut child = {{ config_map }}::default();
    child.metadata.name = Some(name);
    child.data = Some([("spec.json".to_owned(), {{ spec }})].into());
    Ok(child)
}
