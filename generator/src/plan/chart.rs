//! Plans the Helm chart in `deploy/chart/`.

use super::crd_files;
use super::file::PlannedFile;
use super::source::{ChartSource, DeploySource, FileSource, ScaffoldSource};
use crate::load::manifest::DeployTool;
use crate::model::operator::Operator;
use crate::model::webhook_configuration::WebhookConfiguration;

/// The version of a new crate.
const FIRST_VERSION: &str = "0.1.0";

/// Plans the chart, if the manifest asks for it: its templates are generated, its values are the
/// user's.
pub(super) fn files<'a>(
    operator: &'a Operator,
    webhooks: Option<Vec<WebhookConfiguration>>,
    version: Option<&'a str>,
) -> Vec<PlannedFile<'a>> {
    if operator.deployment.tool == DeployTool::Kustomize {
        return Vec::new();
    }
    let definitions = crd_files::copies(operator.crd_files.iter());
    let metadata = ChartSource::Metadata {
        name: &operator.name,
        version: version.unwrap_or(FIRST_VERSION),
    };
    let notes = ChartSource::Notes {
        name: &operator.name,
        has_definitions: !definitions.is_empty(),
    };
    let files = [
        ("Chart.yaml", metadata),
        ("values.schema.json", ChartSource::ValuesSchema(operator)),
        ("templates/_helpers.tpl", ChartSource::Helpers(operator)),
        ("templates/NOTES.txt", notes),
        ("templates/rbac.yaml", ChartSource::Rbac(operator)),
        ("templates/deployment.yaml", ChartSource::Workload(operator)),
        (
            "templates/network-policy.yaml",
            ChartSource::NetworkPolicy(operator),
        ),
        (
            "templates/monitoring.yaml",
            ChartSource::Monitoring(operator),
        ),
    ];
    let webhooks = webhooks.map(|configurations| {
        let source = ChartSource::Webhooks {
            operator,
            configurations,
        };
        ("templates/webhooks.yaml", source)
    });
    let files = files.into_iter().chain(webhooks);
    let files =
        files.map(|(path, source)| PlannedFile::generated(&at(path), FileSource::Chart(source)));
    let definitions = (!definitions.is_empty()).then(|| {
        (
            "crds/definitions.yaml",
            DeploySource::CrdCopies(definitions),
        )
    });
    let peering = operator.peering.is_deployed();
    let peering = peering.then_some(("crds/peering.yaml", DeploySource::Peering));
    // Helm applies these as they are.
    let definitions = definitions.into_iter().chain(peering);
    let definitions = definitions.map(|(path, source)| PlannedFile::deploy(&at(path), source));
    let values = PlannedFile::scaffold(&at("values.yaml"), ScaffoldSource::ChartValues(operator));
    files.chain(definitions).chain([values]).collect()
}

fn at(path: &str) -> String {
    format!("deploy/chart/{path}")
}
