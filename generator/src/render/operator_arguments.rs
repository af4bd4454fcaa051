//! The arguments of an operator in a cluster.

use super::helm_values;
use super::object_names::{ObjectNames, concatenated};
use super::rbac::WEBHOOK_SUFFIX;
use crate::helm_expression::HelmExpression;
use crate::model::operator::Operator;
use crate::yaml::{ChartPart, Yaml, YamlItem};

const RUN: &str = "run";
const ALL_NAMESPACES: &str = "--all-namespaces";
const LIVENESS: &str = "--liveness=http://0.0.0.0:8080/healthz";

/// The arguments that follow from the manifest.
pub(super) fn of_manifest(operator: &Operator) -> Yaml {
    let everywhere = operator.namespaces.is_empty().then_some(ALL_NAMESPACES);
    let arguments = [RUN].into_iter().chain(everywhere);
    Yaml::list(arguments.chain(["--log-format=json", LIVENESS]))
}

/// The arguments that follow from the values of a chart.
pub(super) fn of_chart(operator: &Operator) -> Yaml {
    let item = |value: Yaml| YamlItem::new(Vec::new(), value);
    let option = |name: &str, value: Yaml| item(concatenated([name.into(), value]));
    let namespaces = helm_values::watched_namespaces(operator);
    let is_everywhere = ChartPart::If(namespaces.clone().negated());
    let each = ChartPart::ForEach("namespace", namespaces);
    let mut arguments = vec![
        item(RUN.into()),
        item(ALL_NAMESPACES.into()).only(is_everywhere),
        option("--namespace=", helm_values::namespace_variable().into()).only(each),
        option("--log-format=", helm_values::log_format().into()),
        item(LIVENESS.into()),
    ];
    arguments.extend(of_release(operator));
    let each = ChartPart::ForEach("argument", helm_values::extra_arguments());
    arguments.push(item(helm_values::argument_variable().into()).only(each));
    Yaml::List(arguments)
}

/// The names that a release gives to what the operator knows by another name.
fn of_release(operator: &Operator) -> Vec<YamlItem> {
    let names = ObjectNames::Release(operator);
    let mut options = Vec::new();
    if operator.has_webhooks() {
        let known = operator.webhook_service();
        let service = names.suffixed(WEBHOOK_SUFFIX);
        options.extend(renamed("--webhook-service=", service, &known, None));
        let mode = helm_values::webhook_mode(operator);
        let known_mode = helm_values::owner_word(operator.admission.configuration);
        let has_other_mode = helm_values::differs(&mode, known_mode);
        let configuration = names.configuration();
        let known = &operator.admission.name;
        // With cert-manager, the operator knows no name.
        options.extend(renamed(
            "--webhook-configuration=",
            configuration,
            known,
            Some(has_other_mode),
        ));
        options.extend(renamed("--webhook-mode=", mode.into(), known_mode, None));
    }
    if let Some(election) = &operator.leader_election {
        let lease = names.lease(&election.lease);
        options.extend(renamed("--lease=", lease, &election.lease, None));
    }
    options
}

/// An option with a value, if that is not the known one, or if the other condition holds.
fn renamed(option: &str, value: Yaml, known: &str, or: Option<HelmExpression>) -> Option<YamlItem> {
    let Yaml::Computed(expression) = &value else {
        return None;
    };
    let differs = helm_values::differs(expression, known);
    let condition = match or {
        Some(or) => HelmExpression::Call("or", vec![differs, or]),
        None => differs,
    };
    let option = concatenated([option.into(), value]);
    Some(YamlItem::new(Vec::new(), option).only(ChartPart::If(condition)))
}
