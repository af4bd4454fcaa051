//! The permissions that a chart can grant: its values decide which rules hold, and where.

use super::operator::Operator;
use super::rbac::{RbacRule, rules};
use crate::load::manifest::ConfigurationOwner;

/// What the values of a chart can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChartChoice {
    /// The served namespaces.
    pub namespaces: ServedChoice,
    /// The writer of the webhook configurations.
    pub webhooks: ConfigurationOwner,
}

/// How a release serves namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedChoice {
    /// All.
    All,
    /// Those that match patterns.
    Patterns,
    /// Those with these names.
    Names,
}

/// A rule, and the choices with which it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenRule {
    /// The rule.
    pub rule: RbacRule,
    /// The choices.
    pub choices: Vec<ChartChoice>,
}

/// All choices of a chart.
#[must_use]
pub fn choices(operator: &Operator) -> Vec<ChartChoice> {
    let owners = operator.possible_webhook_owners();
    let served = ServedChoice::EACH.into_iter();
    let choices = served.flat_map(|namespaces| {
        owners.iter().map(move |&webhooks| ChartChoice {
            namespaces,
            webhooks,
        })
    });
    choices.collect()
}

/// The rules of these choices.
#[must_use]
pub fn chosen_rules(operator: &Operator, choices: &[ChartChoice]) -> Vec<ChosenRule> {
    let mut chosen = operator.clone();
    let mut known_rules: Vec<ChosenRule> = Vec::new();
    for &choice in choices {
        chosen.namespaces = choice.namespaces.sample();
        chosen.admission.configuration = choice.webhooks;
        for rule in rules(&chosen) {
            match known_rules.iter_mut().find(|known| known.grants(&rule)) {
                Some(known) => known.choices.push(choice),
                None => known_rules.push(ChosenRule {
                    rule,
                    choices: vec![choice],
                }),
            }
        }
    }
    known_rules
}

// === impl ServedChoice ===

impl ServedChoice {
    /// Each of them.
    pub const EACH: [Self; 3] = [Self::All, Self::Patterns, Self::Names];

    /// Namespaces for which an operator has the permissions of this choice.
    fn sample(self) -> Vec<String> {
        match self {
            Self::All => Vec::new(),
            Self::Patterns => vec!["sample-*".to_owned()],
            Self::Names => vec!["sample".to_owned()],
        }
    }
}

// === impl ChosenRule ===

impl ChosenRule {
    /// Whether a rule grants the same.
    fn grants(&self, other: &RbacRule) -> bool {
        let verbs =
            |rule: &RbacRule| -> Vec<&str> { rule.verbs.iter().map(|grant| grant.verb).collect() };
        self.rule.scope == other.scope
            && self.rule.groups == other.groups
            && self.rule.resources == other.resources
            && self.rule.names == other.names
            && verbs(&self.rule) == verbs(other)
    }
}
