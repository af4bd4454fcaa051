//! What the operator knows, and the handlers of each kind.
{% for module in modules -%}
{% if loop.first %}
{% endif -%}
mod {{ module }};
{% endfor %}
/// Lives as long as the operator and is shared by all handlers: the place for clients and pools.
#[derive(Debug, Default)]
pub struct Operator {}
