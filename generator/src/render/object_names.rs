//! The names of the objects that are deployed: as `kopf.yaml` says, or by each release of a chart.

use crate::helm_expression::HelmExpression;
use crate::model::operator::Operator;
use crate::yaml::{Yaml, YamlMap};

/// The label by which Services and Deployments find the Pods of an operator.
const NAME_LABEL: &str = "app.kubernetes.io/name";

/// Stands for the name in texts of ours until [`ObjectNames::filled`] puts it there; it is in no
/// name, query or file name.
const MARK: &str = "\u{f8ff}";

/// The names of the objects of an operator.
#[derive(Clone, Copy, Debug)]
pub(super) enum ObjectNames<'a> {
    /// The name of the operator, also for its namespace.
    Manifest(&'a Operator),
    /// Names that no other release has.
    Release(&'a Operator),
}

/// The namespace of an object.
#[derive(Clone, Debug)]
pub(super) enum ObjectPlace {
    /// That of the operator.
    Own,
    /// This one.
    In(Yaml),
    /// None: it belongs to the cluster.
    Cluster,
}

/// A named template of a chart.
pub(super) fn include(operator: &Operator, name: &str) -> HelmExpression {
    HelmExpression::Include(format!("{}.{name}", operator.name))
}

/// Several texts as one.
pub(super) fn concatenated(parts: impl IntoIterator<Item = Yaml>) -> Yaml {
    let mut pieces = Vec::new();
    let mut text = String::new();
    for part in parts {
        match part {
            Yaml::Text(part) => text.push_str(&part),
            Yaml::Computed(piece) => {
                pieces.extend(taken(&mut text));
                pieces.push(piece);
            }
            // Nothing else is a part of a name.
            _ => {}
        }
    }
    if pieces.is_empty() {
        return text.into();
    }
    pieces.extend(taken(&mut text));
    HelmExpression::Call("print", pieces).into()
}

fn taken(text: &mut String) -> Option<HelmExpression> {
    let text = std::mem::take(text);
    (!text.is_empty()).then_some(HelmExpression::Text(text))
}

// === impl ObjectNames ===

impl<'a> ObjectNames<'a> {
    /// The operator.
    pub(super) fn operator(self) -> &'a Operator {
        match self {
            Self::Manifest(operator) | Self::Release(operator) => operator,
        }
    }

    /// Whether a chart names them.
    pub(super) fn is_chart(self) -> bool {
        matches!(self, Self::Release(_))
    }

    /// The name as it stands in a text for [`ObjectNames::filled`].
    pub(super) fn word(self) -> &'a str {
        match self {
            Self::Manifest(operator) => &operator.name,
            Self::Release(_) => MARK,
        }
    }

    /// A text that was made with [`ObjectNames::word`].
    pub(super) fn filled(self, text: &str) -> Yaml {
        match self {
            Self::Manifest(_) => text.into(),
            Self::Release(operator) => around(text, &include(operator, "fullname")),
        }
    }

    /// The name of the Deployment and what goes with it.
    pub(super) fn name(self) -> Yaml {
        self.filled(self.word())
    }

    /// The name with a suffix.
    pub(super) fn suffixed(self, suffix: &str) -> Yaml {
        self.filled(&format!("{}{suffix}", self.word()))
    }

    /// A name that is unique in the cluster, with a suffix.
    pub(super) fn in_cluster(self, suffix: &str) -> Yaml {
        let text = format!("{}{suffix}", self.word());
        match self {
            Self::Manifest(_) => text.into(),
            Self::Release(operator) => around(&text, &include(operator, "clusterName")),
        }
    }

    /// The namespace of the operator.
    pub(super) fn namespace(self) -> Yaml {
        match self {
            Self::Manifest(operator) => operator.name.as_str().into(),
            Self::Release(_) => HelmExpression::Builtin("Release.Namespace").into(),
        }
    }

    /// The ServiceAccount.
    pub(super) fn account(self) -> Yaml {
        match self {
            Self::Manifest(_) => self.name(),
            Self::Release(operator) => include(operator, "serviceAccountName").into(),
        }
    }

    /// The webhook configurations.
    pub(super) fn configuration(self) -> Yaml {
        match self {
            Self::Manifest(operator) => operator.admission.name.as_str().into(),
            Self::Release(operator) => include(operator, "webhookConfiguration").into(),
        }
    }

    /// The Lease of the leader.
    pub(super) fn lease(self, lease: &str) -> Yaml {
        match self {
            Self::Manifest(_) => lease.into(),
            Self::Release(operator) => include(operator, "lease").into(),
        }
    }

    /// The labels by which Services and Deployments find the Pods.
    pub(super) fn pod_labels(self) -> YamlMap {
        let labels = YamlMap::default().with(NAME_LABEL, self.operator().name.as_str());
        match self {
            Self::Manifest(_) => labels,
            Self::Release(_) => labels.with(
                "app.kubernetes.io/instance",
                HelmExpression::Builtin("Release.Name"),
            ),
        }
    }

    /// The metadata of an object with labels; those of a chart label everything.
    pub(super) fn labelled(self, name: Yaml, place: ObjectPlace, more: YamlMap) -> YamlMap {
        let metadata = YamlMap::default().with("name", name);
        let metadata = match place {
            ObjectPlace::Own => metadata.with("namespace", self.namespace()),
            ObjectPlace::In(namespace) => metadata.with("namespace", namespace),
            ObjectPlace::Cluster => metadata,
        };
        metadata.with("labels", self.labels().joined(more))
    }

    /// The metadata of an object.
    pub(super) fn metadata(self, name: Yaml, place: ObjectPlace) -> YamlMap {
        let metadata = self.labelled(name, place, YamlMap::default());
        match self {
            Self::Manifest(_) => metadata.without("labels"),
            Self::Release(_) => metadata,
        }
    }

    fn labels(self) -> YamlMap {
        let labels = self.pod_labels();
        match self {
            Self::Manifest(_) => labels,
            Self::Release(operator) => labels
                .with(
                    "app.kubernetes.io/managed-by",
                    HelmExpression::Builtin("Release.Service"),
                )
                .with("helm.sh/chart", include(operator, "chart")),
        }
    }
}

/// A text with an expression in each place of the mark.
fn around(text: &str, name: &HelmExpression) -> Yaml {
    if text == MARK {
        return name.clone().into();
    }
    let pieces = text.split(MARK).enumerate().flat_map(|(index, piece)| {
        let name = (index > 0).then(|| Yaml::Computed(name.clone()));
        name.into_iter().chain([piece.into()])
    });
    concatenated(pieces)
}
