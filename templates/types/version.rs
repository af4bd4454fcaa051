{% for line in docs %}{{ line }}
{% endfor %}{% if constants %}
#![allow(clippy::approx_constant, reason = "the numbers come from the schema")]
{% endif %}
{% for line in imports %}{{ line }}
{% endfor %}{% if !shared.is_empty() %}
{% for line in shared %}{{ line }}
{% endfor %}{% endif %}{% for item in items %}
{{ item }}
{% endfor %}{% for function in functions %}
fn {{ function.name }}() -> {{ function.ty }} {
    {{ function.value }}
}
{% endfor %}{% if nullable %}
/// Distinguishes null from an absent value.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}
{% endif %}{% if undeclared %}
/// The undeclared members of the object, without `apiVersion` and `kind`.
fn undeclared<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let mut members = BTreeMap::deserialize(deserializer)?;
    members.remove("apiVersion");
    members.remove("kind");
    Ok(members)
}
{% endif %}
