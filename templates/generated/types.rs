//! The types of the custom kinds, generated from their CRDs.

{% for module in modules -%}
pub mod {{ module }};
{% endfor %}
