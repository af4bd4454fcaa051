//! The operator `{{ name }}`, generated from `kopf.yaml`: types, handler traits and registration.
#![allow(dead_code, reason = "an operator rarely uses every field of every type")]

{% for kind in kinds -%}
pub mod {{ kind.module }};
{% endfor -%}
{% if has_indices -%}
pub mod indices;
{% endif -%}
{% if has_hooks -%}
pub mod hooks;
{% endif -%}
{% if has_types -%}
pub mod types;
{% endif %}
{% if !bounds.is_empty() -%}
use std::sync::Arc;
{% endif %}

const _: () = kopf_runtime::assert_codegen_abi({{ abi }});

/// The operator, with the methods of `state` as its handlers.
pub fn operator<S>({% if bounds.is_empty() %}_{% endif %}state: S) -> kopf_runtime::Operator
{% if !bounds.is_empty() -%}
where
    S: {{ bounds|join(" + ") }},
{% endif -%}
{
    {% if !bounds.is_empty() -%}
    let state = Arc::new(state);
    {% endif -%}
    kopf_runtime::Operator::new("{{ name }}")
    {% if let Some(namespaces) = namespaces -%}
        .namespaces({{ namespaces }})
    {% endif -%}
    {% if let Some(peering) = peering -%}
        .peering({{ peering }})
    {% endif -%}
    {% if let Some(election) = leader_election -%}
        .leader_election({{ election }})
    {% endif -%}
    {% if let Some(settings) = settings -%}
        .settings({{ settings }})
    {% endif -%}
    {% if has_hooks -%}
        .handlers(hooks::handlers(&state))
    {% endif -%}
    {% for kind in kinds -%}
        .resource({{ kind.module }}::resource(&state))
    {% endfor -%}
    {% if let Some(webhooks) = webhooks -%}
        .webhooks(kopf_runtime::admission::Webhooks::default(){{ webhooks }})
    {% endif -%}
    {% for file in crd_files -%}
        .crd(include_str!({{ file }}))
    {% endfor -%}
}
