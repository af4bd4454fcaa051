//! What happens to the operator as a whole.

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
