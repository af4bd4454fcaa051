//! Handlers for {{ objects }}.

{% for import in imports -%}
{{ import }}
{% endfor -%}
{% for line in memo -%}
{{ line }}
{% endfor -%}
impl {{ handlers_trait }} for {{ state }} {
{%- for stub in stubs %}
{{ stub }}
{%- if loop.last %}
{% endif -%}
{%- endfor -%}
}
{{ rest }}