//! `deploy/base/webhooks.yaml`: the Service, certificates and configurations of an operator's webhooks.

use kopf_core::admission::WebhookRole as CoreRole;
use kopf_core::admission::configuration::SYSTEM_NAMESPACES;
use serde_json::Value;

use super::object_names::{ObjectNames, ObjectPlace, concatenated};
use super::rbac::WEBHOOK_SUFFIX;
use crate::load::manifest::ConfigurationOwner;
use crate::model::operator::Operator;
use crate::model::webhook_configuration::WebhookConfiguration;
use crate::plan::YAML_BANNER;
use crate::yaml::{Yaml, YamlDocuments, YamlMap};

const ADMISSION_VERSION: &str = "admissionregistration.k8s.io/v1";

pub(super) const SERVICE_COMMENT: &str =
    "The Service through which the API server calls the webhooks.";

/// An object below its comment.
type CommentedObject = (&'static [&'static str], YamlMap);

/// The objects for the webhooks of `operator`.
pub(super) fn objects(
    operator: &Operator,
    configurations: &[WebhookConfiguration],
) -> YamlDocuments {
    let names = ObjectNames::Manifest(operator);
    let banner: &[&str] = &[YAML_BANNER, SERVICE_COMMENT];
    let mut documents: Vec<(&[&str], YamlMap)> = vec![(banner, service(names))];
    match operator.admission.configuration {
        ConfigurationOwner::Managed => documents.extend(filled_by_operator(names)),
        ConfigurationOwner::CertManager => documents.extend(certified(names, configurations)),
    }
    documents.into_iter().collect()
}

/// The Service through which the API server calls the webhooks.
pub(super) fn service(names: ObjectNames<'_>) -> YamlMap {
    let port = YamlMap::default()
        .with("port", 443)
        .with("targetPort", 9443);
    YamlMap::object("v1", "Service")
        .with("metadata", place(names))
        .with(
            "spec",
            YamlMap::default()
                .with("selector", names.pod_labels())
                .with("ports", Yaml::list([port])),
        )
}

/// The metadata of the Service and of what has its name.
fn place(names: ObjectNames<'_>) -> YamlMap {
    names.metadata(names.suffixed(WEBHOOK_SUFFIX), ObjectPlace::Own)
}

/// Empty objects that the operator fills.
pub(super) fn filled_by_operator(names: ObjectNames<'_>) -> Vec<CommentedObject> {
    let secret = YamlMap::object("v1", "Secret")
        .with("metadata", place(names))
        .with("type", "Opaque");
    let why: &[&str] = &[
        "The operator fills and renews this Secret, and so needs no permission to create Secrets.",
    ];
    let configurations = CoreRole::ALL.map(|role| {
        let metadata = names.metadata(names.configuration(), ObjectPlace::Cluster);
        let configuration = YamlMap::object(ADMISSION_VERSION, role.configuration_kind())
            .with("metadata", metadata);
        let why: &[&str] = &[
            "The operator fills this while it runs, and so needs no permission to create configurations.",
        ];
        (why, configuration)
    });
    [(why, secret)].into_iter().chain(configurations).collect()
}

/// The certificate that cert-manager makes, and complete configurations.
pub(super) fn certified(
    names: ObjectNames<'_>,
    configurations: &[WebhookConfiguration],
) -> Vec<CommentedObject> {
    let complete = configurations.iter();
    let complete = complete.map(|it| (&[][..], configuration(names, it)));
    certificate(names).into_iter().chain(complete).collect()
}

fn certificate(names: ObjectNames<'_>) -> Vec<CommentedObject> {
    let service = || names.suffixed(WEBHOOK_SUFFIX);
    let issuer = YamlMap::object("cert-manager.io/v1", "Issuer")
        .with("metadata", place(names))
        .with(
            "spec",
            YamlMap::default().with("selfSigned", YamlMap::default()),
        );
    let hosts = [".svc", ".svc.cluster.local"].map(|suffix| host(names, suffix));
    let certificate = YamlMap::object("cert-manager.io/v1", "Certificate")
        .with("metadata", place(names))
        .with(
            "spec",
            YamlMap::default()
                .with("secretName", service())
                .with("dnsNames", Yaml::list(hosts))
                .with(
                    "issuerRef",
                    YamlMap::default()
                        .with("kind", "Issuer")
                        .with("name", service()),
                ),
        );
    let why: &[&str] =
        &["cert-manager stores the certificate in a Secret, which the operator reads."];
    vec![(&[][..], issuer), (why, certificate)]
}

/// A name of the Service in the network of the cluster.
fn host(names: ObjectNames<'_>, suffix: &str) -> Yaml {
    let service = names.suffixed(WEBHOOK_SUFFIX);
    concatenated([service, ".".into(), names.namespace(), suffix.into()])
}

/// The Certificate, as cert-manager's annotation names it.
fn certificate_name(names: ObjectNames<'_>) -> Yaml {
    let service = names.suffixed(WEBHOOK_SUFFIX);
    concatenated([names.namespace(), "/".into(), service])
}

/// A configuration into which cert-manager writes its certificate.
fn configuration(names: ObjectNames<'_>, configuration: &WebhookConfiguration) -> YamlMap {
    let entries = configuration.entries.iter();
    let entries = entries.map(|entry| match names {
        ObjectNames::Manifest(_) => YamlMap::from(entry),
        ObjectNames::Release(_) => of_release(names, entry),
    });
    let annotations =
        YamlMap::default().with("cert-manager.io/inject-ca-from", certificate_name(names));
    let metadata = names.metadata(names.configuration(), ObjectPlace::Cluster);
    YamlMap::object(ADMISSION_VERSION, configuration.role.configuration_kind())
        .with("metadata", metadata.with("annotations", annotations))
        .with("webhooks", Yaml::list(entries))
}

/// A webhook that is called through the Service of a release, and not for its namespace.
fn of_release(names: ObjectNames<'_>, entry: &Value) -> YamlMap {
    let service = YamlMap::from(&entry["clientConfig"]["service"])
        .replaced("namespace", names.namespace())
        .replaced("name", names.suffixed(WEBHOOK_SUFFIX));
    let systems = SYSTEM_NAMESPACES.map(Yaml::from).into_iter();
    let protected = Yaml::list(systems.chain([names.namespace()]));
    let namespaces = YamlMap::from(&entry["namespaceSelector"]["matchExpressions"][0])
        .replaced("values", protected);
    YamlMap::from(entry)
        .replaced("clientConfig", YamlMap::default().with("service", service))
        .replaced(
            "namespaceSelector",
            YamlMap::default().with("matchExpressions", Yaml::list([namespaces])),
        )
}
