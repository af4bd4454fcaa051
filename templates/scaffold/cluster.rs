//! Tests on a real control plane, which starts by itself.

use kopf_testing::{TestResult, on_cluster};
{%- if uses_metadata %}
use kube::ResourceExt as _;
{%- endif %}

{{ program }}

/// The CRDs that the test installs.
#[rustfmt::skip]
const DEFINITIONS: &[&str] = &[
{%- for definition in definitions %}
    include_str!("../{{ definition }}"),
{%- endfor %}
];

/// An object that the API server accepts.
const OBJECT: &str = {{ object }};

#[test]
{{ signature }}
    on_cluster(async |cluster| {
        for definition in DEFINITIONS {
            cluster.apply(definition).await?;
        }
        let program = cluster.program(PROGRAM).arg("--standalone");
        let operator = program.start().await?;

{%- for line in objects %}
        {{ line }}
{%- endfor %}
        let object = serde_json::from_str(OBJECT)?;
        objects.create("example", object).await?;
        {{ wait }}
        objects.delete("example").await?;
        objects.until_gone("example").await?;
        operator.stop().await
    })
}
