//! Reads `operator.deploy`.

use schemars::JsonSchema;

use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::spanned::Spanned;

/// The tools for which files in `deploy/` are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum DeployTool {
    /// `kubectl apply -k deploy/`.
    #[default]
    Kustomize,
    /// A chart in `deploy/chart/`.
    Helm,
    /// Both.
    Both,
}

const TOOLS: &[(&str, DeployTool)] = &[
    ("kustomize", DeployTool::Kustomize),
    ("helm", DeployTool::Helm),
    ("both", DeployTool::Both),
];

/// How the operator runs in a cluster.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DeploySection {
    /// The tool that installs the operator: `kustomize`, `helm` for a chart in `deploy/chart/`, or
    /// `both`; `kustomize` if left out.
    pub tool: Option<Spanned<DeployTool>>,
    /// The image of the operator, such as `registry.example.com/team/my-operator:1.0`; if left out,
    /// the name of the operator and `latest`, which only a cluster on your machine finds.
    pub image: Option<Spanned<String>>,
    /// The number of Pods; 2 with leader election, else 1, if left out.
    pub replicas: Option<Spanned<u32>>,
    /// Whether only probes, metrics and webhooks reach the Pods; false if left out.
    pub network_policy: Option<Spanned<bool>>,
    /// Whether the Prometheus operator finds the metrics by a ServiceMonitor; false if left out.
    pub service_monitor: Option<Spanned<bool>>,
    /// Whether the Prometheus operator gets alert rules for these metrics; false if left out.
    pub alerts: Option<Spanned<bool>>,
    /// Whether there is a dashboard of these metrics for Grafana; false if left out.
    pub dashboard: Option<Spanned<bool>>,
}

impl ManifestReader<'_> {
    pub(super) fn deploy(&mut self, fields: &mut MappingFields<'_>) -> Option<DeploySection> {
        let node = fields.optional("deploy")?;
        let mut fields = self.fields(node, "`deploy`")?;
        let section = DeploySection {
            tool: fields
                .optional("tool")
                .and_then(|node| self.word(node, "`tool`", TOOLS)),
            image: self.optional_string(&mut fields, "image"),
            replicas: self.count(&mut fields, "replicas"),
            network_policy: self.boolean(&mut fields, "network_policy"),
            service_monitor: self.boolean(&mut fields, "service_monitor"),
            alerts: self.boolean(&mut fields, "alerts"),
            dashboard: self.boolean(&mut fields, "dashboard"),
        };
        fields.finish(self);
        Some(section)
    }
}
