//! WatchSelectors and their resolution: examples and properties.

use std::sync::Arc;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;

use super::resolve::{Resolution, ResourceDemand, SelectionFinding, Wanted, resolve};
use super::*;

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn resource(group: &str, version: &str, kind: &str) -> DiscoveredResource {
    let singular = kind.to_lowercase();
    DiscoveredResource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: format!("{singular}s"),
        singular,
        verbs: set(&[
            "get", "list", "watch", "create", "update", "patch", "delete",
        ]),
        namespaced: true,
        preferred: true,
        ..DiscoveredResource::default()
    }
}

/// A cluster with the difficult cases of selection.
fn cluster() -> Vec<Arc<DiscoveredResource>> {
    let pods = DiscoveredResource {
        short_names: set(&["po"]),
        categories: set(&["all"]),
        ..resource("", "v1", "Pod")
    };
    let measured_pods = DiscoveredResource {
        kind: "PodMetrics".to_owned(),
        plural: "pods".to_owned(),
        verbs: set(&["get", "list"]),
        ..resource("metrics.k8s.io", "v1beta1", "PodMetrics")
    };
    let old_jobs = DiscoveredResource {
        preferred: false,
        ..resource("batch", "v1beta1", "Job")
    };
    let reviews = DiscoveredResource {
        verbs: set(&["create"]),
        ..resource("authentication.k8s.io", "v1", "TokenReview")
    };
    let readings = DiscoveredResource {
        verbs: set(&["get", "list", "watch"]),
        ..resource("metrics.example.com", "v1", "Reading")
    };
    let widgets = |group| DiscoveredResource {
        categories: set(&["toys"]),
        ..resource(group, "v1", "Widget")
    };
    let all = [
        pods,
        resource("", "v1", "Event"),
        resource("events.k8s.io", "v1", "Event"),
        resource("coordination.k8s.io", "v1", "Lease"),
        measured_pods,
        resource("batch", "v1", "Job"),
        old_jobs,
        reviews,
        readings,
        widgets("a.example.com"),
        widgets("b.example.com"),
    ];
    all.into_iter().map(Arc::new).collect()
}

fn selected(selector: Selector) -> ResourceDemand {
    ResourceDemand {
        wanted: Wanted::Selected(selector),
        writes: false,
    }
}

fn writing(demand: ResourceDemand) -> ResourceDemand {
    ResourceDemand {
        writes: true,
        ..demand
    }
}

fn exact(group: &str, version: &str, plural: &str) -> ResourceDemand {
    ResourceDemand {
        wanted: Wanted::Exact {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
        },
        writes: true,
    }
}

fn names(resolution: &Resolution) -> Vec<String> {
    let served = resolution.served.iter();
    served.map(|it| it.resource.name()).collect()
}

fn found(demand: ResourceDemand) -> Vec<String> {
    names(&resolve(&[demand], &cluster()))
}

#[test]
fn a_resource_is_found_by_each_of_its_names() {
    for selector in [
        Selector::kind("Pod"),
        Selector::plural("pods"),
        Selector::singular("pod"),
        Selector::short_name("po"),
        Selector::any_name("Pod"),
        Selector::any_name("pods"),
        Selector::any_name("pod"),
        Selector::any_name("po"),
    ] {
        assert_eq!(found(selected(selector.clone())), ["pods"], "{selector}");
    }
    assert!(found(selected(Selector::kind("pod"))).is_empty());
    assert!(found(selected(Selector::category("po"))).is_empty());
}

#[test]
fn categories_and_groups_select_all_of_their_resources() {
    let toys = ["widgets.a.example.com", "widgets.b.example.com"];
    assert_eq!(found(selected(Selector::category("toys"))), toys);
    let group = Selector::everything().in_group("batch");
    assert_eq!(found(selected(group)), ["jobs.batch"]);
    let both = Selector::category("toys").in_group("a.example.com");
    assert_eq!(found(selected(both)), toys[..1]);
}

#[test]
fn everything_selects_all_watchable_resources_but_events() {
    let all = [
        "pods",
        "widgets.a.example.com",
        "widgets.b.example.com",
        "jobs.batch",
        "leases.coordination.k8s.io",
        "readings.metrics.example.com",
    ];
    assert_eq!(found(selected(Selector::everything())), all);
    let written = [all[0], all[1], all[2], all[3]];
    assert_eq!(found(writing(selected(Selector::everything()))), written);
    assert_eq!(found(selected(Selector::plural("events"))), ["events"]);
}

#[test]
fn two_matches_of_a_selector_for_one_resource_are_reported() {
    let resolution = resolve(&[selected(Selector::kind("Widget"))], &cluster());
    assert!(resolution.served.is_empty());
    let both = ["widgets.a.example.com", "widgets.b.example.com"];
    let both = both.map(str::to_owned).to_vec();
    assert_eq!(resolution.findings, [[SelectionFinding::Ambiguous(both)]]);
    let one = Selector::kind("Widget").in_group("b.example.com");
    assert_eq!(found(selected(one)), ["widgets.b.example.com"]);
}

#[test]
fn missing_and_unusable_resources_are_reported() {
    let findings = |demand| resolve(&[demand], &cluster()).findings.remove(0);
    let nothing = selected(Selector::kind("Gadget"));
    assert_eq!(findings(nothing), [SelectionFinding::Nothing]);
    let reviews = "tokenreviews.authentication.k8s.io".to_owned();
    let review = selected(Selector::kind("TokenReview"));
    assert_eq!(findings(review), [SelectionFinding::NotWatchable(reviews)]);
    let readings = "readings.metrics.example.com".to_owned();
    let reading = selected(Selector::kind("Reading"));
    assert!(findings(reading.clone()).is_empty());
    assert_eq!(
        findings(writing(reading)),
        [SelectionFinding::NotPatchable(readings)]
    );
}

#[test]
fn resources_of_a_definition_that_is_being_deleted_are_served() {
    let ending = DiscoveredResource {
        verbs: set(&["delete", "deletecollection", "get", "list", "watch"]),
        ..resource("example.com", "v1", "Widget")
    };
    let demand = writing(selected(Selector::kind("Widget")));
    let resolution = resolve(&[demand], &[Arc::new(ending)]);
    assert_eq!(names(&resolution), ["widgets.example.com"]);
}

#[test]
fn one_stream_serves_all_declarations_of_a_resource_in_the_version_of_the_declared_kind() {
    let named = Selector::kind("Job").in_version("v1");
    let demands = [
        selected(Selector::everything().in_group("batch")),
        exact("batch", "v1beta1", "jobs"),
        selected(named),
    ];
    let resolution = resolve(&demands, &cluster());
    let [served] = resolution.served.as_slice() else {
        panic!("one resource is served: {resolution:?}");
    };
    assert_eq!(served.resource.version, "v1beta1");
    assert_eq!(served.demands, [0, 1]);
    let other = SelectionFinding::OtherVersion {
        resource: "jobs.batch".to_owned(),
        version: "v1beta1".to_owned(),
    };
    assert_eq!(resolution.findings, [vec![], vec![], vec![other]]);
}

#[test]
fn the_first_selection_with_a_version_decides_for_those_without() {
    let demands = [
        selected(Selector::everything().in_group("batch")),
        selected(Selector::kind("Job").in_version("v1beta1")),
    ];
    let resolution = resolve(&demands, &cluster());
    assert_eq!(resolution.served[0].resource.version, "v1beta1");
    assert_eq!(resolution.served[0].demands, [0, 1]);
}

#[test]
fn selectors_are_written_as_in_the_manifest() {
    for (selector, text) in [
        (Selector::everything(), "everything"),
        (Selector::everything().in_group(""), "{group: \"\"}"),
        (
            Selector::category("all").in_group("apps").in_version("v1"),
            "{category: all, group: apps, version: v1}",
        ),
    ] {
        assert_eq!(selector.to_string(), text);
    }
}

const WORDS: [&str; 3] = ["a", "b", "c"];

fn word() -> impl Strategy<Value = String> {
    select(&WORDS[..]).prop_map(str::to_owned)
}

fn words() -> impl Strategy<Value = BTreeSet<String>> {
    btree_set(word(), 0..3)
}

fn any_resource() -> impl Strategy<Value = DiscoveredResource> {
    let verbs = btree_set(
        select(&["list", "watch", "patch", "create"][..]).prop_map(str::to_owned),
        0..4,
    );
    let plural = select(&["a", "b", "events", "leases", "a/status"][..]).prop_map(str::to_owned);
    let group = select(&["", "a", "events.k8s.io", "coordination.k8s.io"][..]);
    let version = select(&["v1", "v2"][..]);
    let names = (word(), plural, word(), words(), words());
    (group, version, names, verbs, any::<bool>()).prop_map(
        |(group, version, (kind, plural, singular, short_names, categories), verbs, preferred)| {
            DiscoveredResource {
                group: group.to_owned(),
                version: version.to_owned(),
                kind,
                plural,
                singular,
                short_names,
                categories,
                verbs,
                preferred,
                ..DiscoveredResource::default()
            }
        },
    )
}

fn any_selector() -> impl Strategy<Value = Selector> {
    let name = prop_oneof![
        word().prop_map(ResourceName::Kind),
        word().prop_map(ResourceName::Plural),
        word().prop_map(ResourceName::Singular),
        word().prop_map(ResourceName::Short),
        word().prop_map(ResourceName::Any),
        word().prop_map(ResourceName::Category),
        Just(ResourceName::Everything),
    ];
    let group = proptest::option::of(select(&["", "a"][..]).prop_map(str::to_owned));
    let version = proptest::option::of(select(&["v1", "v2"][..]).prop_map(str::to_owned));
    (group, version, name).prop_map(|(group, version, name)| Selector {
        group,
        version,
        name,
    })
}

fn any_demand() -> impl Strategy<Value = ResourceDemand> {
    let declared = (word(), select(&["v1", "v2"][..]), word());
    let declared = declared.prop_map(|(group, version, plural)| exact(&group, version, &plural));
    let selected = (any_selector(), any::<bool>()).prop_map(|(selector, writes)| ResourceDemand {
        wanted: Wanted::Selected(selector),
        writes,
    });
    prop_oneof![1 => declared, 4 => selected]
}

/// Each version of a resource once, and one of them preferred, as in real discovery.
fn any_catalog() -> impl Strategy<Value = Vec<Arc<DiscoveredResource>>> {
    vec(any_resource(), 0..12).prop_map(|resources| {
        let mut catalog: Vec<Arc<DiscoveredResource>> = Vec::new();
        for resource in resources {
            let mut same = catalog.iter().filter(|it| it.same_objects_as(&resource));
            if same.clone().any(|it| it.version == resource.version) {
                continue;
            }
            let preferred = same.next().is_none();
            catalog.push(Arc::new(DiscoveredResource {
                preferred,
                ..resource
            }));
        }
        catalog
    })
}

proptest! {
    #[test]
    fn no_objects_are_served_twice_and_no_declaration_gets_another_version_than_its_own(
        demands in vec(any_demand(), 0..5),
        catalog in any_catalog(),
    ) {
        let resolution = resolve(&demands, &catalog);
        prop_assert_eq!(resolution.findings.len(), demands.len());
        let mut served_objects = BTreeSet::new();
        for served in &resolution.served {
            let resource = &served.resource;
            prop_assert!(catalog.contains(resource));
            prop_assert!(served_objects.insert((resource.group.clone(), resource.plural.clone())));
            prop_assert!(!served.demands.is_empty());
            prop_assert!(served.demands.is_sorted());
            for &position in &served.demands {
                let version = demands[position].version(resource);
                prop_assert!(version.is_none_or(|it| it == resource.version));
                if let Wanted::Selected(selector) = &demands[position].wanted
                    && selector.name == ResourceName::Everything
                {
                    prop_assert!(!resource.is_event());
                    prop_assert!(!demands[position].writes || !resource.is_coordination());
                }
            }
        }
    }

    #[test]
    fn a_selection_serves_only_what_can_be_watched_and_written(
        selector in any_selector(),
        writes in any::<bool>(),
        catalog in any_catalog(),
    ) {
        let demand = ResourceDemand { wanted: Wanted::Selected(selector.clone()), writes };
        let resolution = resolve(&[demand], &catalog);
        for served in &resolution.served {
            prop_assert!(served.resource.is_watchable());
            prop_assert!(!served.resource.plural.contains('/'));
            prop_assert!(!writes || served.resource.is_patchable());
            prop_assert!(selector.selects(&served.resource));
        }
        if selector.is_specific() {
            prop_assert!(resolution.served.len() <= 1);
        }
    }

    #[test]
    fn selections_that_cannot_overlap_never_do(
        one in any_selector(),
        other in any_selector(),
        catalog in any_catalog(),
    ) {
        for resource in &catalog {
            let both = one.selects(resource) && other.selects(resource);
            prop_assert!(!both || one.may_overlap(&other));
            let may = one.may_select(&resource.group, &resource.kind, &resource.plural);
            prop_assert!(!one.selects(resource) || may);
        }
    }
}
