//! The permissions in a chart: its values decide which rules hold, and where.

use super::helm_values;
use super::object_names::{ObjectNames, ObjectPlace};
use super::rbac::{HANDLERS_SUFFIX, RoleObjects, rule};
use crate::helm_expression::HelmExpression;
use crate::load::manifest::ConfigurationOwner;
use crate::model::chart_rules::{ChartChoice, ChosenRule, ServedChoice, choices, chosen_rules};
use crate::model::operator::Operator;
use crate::model::rbac::RuleScope;
use crate::yaml::{ChartDocument, ChartPart, YamlItem, YamlMap};

/// The roles of all choices.
struct ChartRoles<'a> {
    operator: &'a Operator,
    rules: Vec<ChosenRule>,
    choices: Vec<ChartChoice>,
}

/// The ServiceAccount, the roles and their bindings.
pub(super) fn documents(operator: &Operator) -> Vec<ChartDocument> {
    let names = ObjectNames::Release(operator);
    let metadata = names.metadata(names.account(), ObjectPlace::Own);
    let account = YamlMap::object("v1", "ServiceAccount")
        .with("metadata", helm_values::account_metadata(metadata));
    let account = ChartDocument {
        part: ChartPart::If(helm_values::creates_account()),
        comment: Vec::new(),
        map: account,
    };
    let roles = ChartRoles::new(operator);
    let cluster = roles.cluster();
    let served = roles.served();
    let own = roles.own();
    let roles = [cluster, served, own].into_iter().flatten().flatten();
    [account].into_iter().chain(roles).collect()
}

// === impl ChartRoles ===

impl<'a> ChartRoles<'a> {
    fn new(operator: &'a Operator) -> Self {
        let choices = choices(operator);
        Self {
            operator,
            rules: chosen_rules(operator, &choices),
            choices,
        }
    }

    /// The role that counts everywhere.
    fn cluster(&self) -> Option<[ChartDocument; 2]> {
        let names = ObjectNames::Release(self.operator);
        let part = self.part_of_role(RuleScope::Cluster);
        let has_part = self
            .rules
            .iter()
            .any(|it| it.rule.scope == RuleScope::Cluster);
        has_part.then(|| {
            self.documents(
                RuleScope::Cluster,
                &part,
                RoleObjects {
                    names,
                    name: names.in_cluster(""),
                    place: ObjectPlace::Cluster,
                    rules: Vec::new(),
                },
            )
        })
    }

    /// The role in each watched namespace.
    fn served(&self) -> Option<[ChartDocument; 2]> {
        let names = ObjectNames::Release(self.operator);
        let namespaces = helm_values::watched_namespaces(self.operator);
        let none = HelmExpression::Call("list", Vec::new());
        let is_named = self.is_scope(ServedChoice::Names);
        let list = HelmExpression::Call("ternary", vec![namespaces, none, is_named]);
        let has_part = self
            .rules
            .iter()
            .any(|it| it.rule.scope == RuleScope::ServedNamespaces);
        has_part.then(|| {
            self.documents(
                RuleScope::ServedNamespaces,
                &ChartPart::ForEach("namespace", list),
                RoleObjects {
                    names,
                    name: names.in_cluster(HANDLERS_SUFFIX),
                    place: ObjectPlace::In(helm_values::namespace_variable().into()),
                    rules: Vec::new(),
                },
            )
        })
    }

    /// The role in the namespace of the release.
    fn own(&self) -> Option<[ChartDocument; 2]> {
        let names = ObjectNames::Release(self.operator);
        let part = self.part_of_role(RuleScope::OwnNamespace);
        let has_part = self
            .rules
            .iter()
            .any(|it| it.rule.scope == RuleScope::OwnNamespace);
        has_part.then(|| {
            self.documents(
                RuleScope::OwnNamespace,
                &part,
                RoleObjects {
                    names,
                    name: names.name(),
                    place: ObjectPlace::Own,
                    rules: Vec::new(),
                },
            )
        })
    }

    /// A role with the rules of a scope, and its binding.
    fn documents(
        &self,
        scope: RuleScope,
        part: &ChartPart,
        role: RoleObjects<'_>,
    ) -> [ChartDocument; 2] {
        let within = match scope {
            // The role exists only with these choices.
            RuleScope::ServedNamespaces => self.with(ServedChoice::Names),
            RuleScope::Cluster | RuleScope::OwnNamespace => self.choices.clone(),
        };
        let rules = self.rules.iter().filter(|it| it.rule.scope == scope);
        let rules: Vec<YamlItem> = rules
            .map(|it| {
                let part = self.part(&it.choices, &within);
                rule(role.names, &it.rule).only(part)
            })
            .collect();
        let role = RoleObjects { rules, ..role };
        let binding = role.binding();
        [role.into_role(), binding].map(|map| ChartDocument {
            part: part.clone(),
            comment: Vec::new(),
            map,
        })
    }

    /// Whether a role with the rules of a scope exists.
    fn part_of_role(&self, scope: RuleScope) -> ChartPart {
        let rules = self.rules.iter().filter(|it| it.rule.scope == scope);
        let mut choices: Vec<ChartChoice> = rules.flat_map(|it| it.choices.clone()).collect();
        choices.sort_by_key(|choice| self.choices.iter().position(|it| it == choice));
        choices.dedup();
        self.part(&choices, &self.choices)
    }

    fn with(&self, namespaces: ServedChoice) -> Vec<ChartChoice> {
        let choices = self.choices.iter().copied();
        choices.filter(|it| it.namespaces == namespaces).collect()
    }

    /// A part that exists with `choices`, where only those of `within` are possible. What depends on
    /// namespaces does not depend on webhooks, and the other way round.
    fn part(&self, choices: &[ChartChoice], within: &[ChartChoice]) -> ChartPart {
        let is_chosen = |test: &dyn Fn(&ChartChoice) -> bool| choices.iter().any(test);
        let is_possible = |test: &dyn Fn(&ChartChoice) -> bool| within.iter().any(test);
        let served = ServedChoice::EACH.into_iter();
        let served: Vec<ServedChoice> = served
            .filter(|it| is_possible(&|choice| choice.namespaces == *it))
            .collect();
        let chosen: Vec<HelmExpression> = served
            .iter()
            .filter(|it| is_chosen(&|choice| choice.namespaces == **it))
            .map(|it| self.is_scope(*it))
            .collect();
        let namespaces = (chosen.len() < served.len()).then(|| any(chosen));
        let possible = self.operator.possible_webhook_owners().iter().copied();
        let possible: Vec<ConfigurationOwner> = possible
            .filter(|it| is_possible(&|choice| choice.webhooks == *it))
            .collect();
        let chosen: Vec<HelmExpression> = possible
            .iter()
            .filter(|it| is_chosen(&|choice| choice.webhooks == **it))
            .map(|it| is_mode(self.operator, *it))
            .collect();
        let webhooks = (chosen.len() < possible.len()).then(|| any(chosen));
        match (namespaces, webhooks) {
            (None, None) => ChartPart::Always,
            (Some(one), None) | (None, Some(one)) => ChartPart::If(one),
            (Some(one), Some(other)) => ChartPart::If(one.and(other)),
        }
    }

    fn is_scope(&self, choice: ServedChoice) -> HelmExpression {
        helm_values::scope(self.operator).equals(HelmExpression::text(word(choice)))
    }
}

/// The word of the named template `scope`.
fn word(choice: ServedChoice) -> &'static str {
    match choice {
        ServedChoice::All => "all",
        ServedChoice::Patterns => "patterns",
        ServedChoice::Names => "names",
    }
}

/// Whether this one maintains the webhook configurations.
pub(super) fn is_mode(operator: &Operator, owner: ConfigurationOwner) -> HelmExpression {
    let word = helm_values::owner_word(owner);
    helm_values::webhook_mode(operator).equals(HelmExpression::text(word))
}

fn any(mut conditions: Vec<HelmExpression>) -> HelmExpression {
    if conditions.len() == 1 {
        conditions.swap_remove(0)
    } else {
        HelmExpression::Call("or", conditions)
    }
}
