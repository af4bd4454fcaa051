//! The types of the custom kinds, as their definitions describe them.

{% for module in modules -%}
pub mod {{ module }};
{% endfor %}
