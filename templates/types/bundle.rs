{{ header }}. Do not edit.

//! Types of custom resources.
{% for module in modules %}
pub mod {{ module.name }}{% if module.body.is_empty() %};{% else %} {
{{ module.body }}
}
{% endif %}{% endfor %}
