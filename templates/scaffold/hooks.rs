//! The hooks of the operator: startup, cleanup, login and probes.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::hooks::Hooks;

impl Hooks for Operator {
{%- for stub in stubs %}
{{ stub }}
{%- if loop.last %}
{% endif -%}
{%- endfor -%}
}
