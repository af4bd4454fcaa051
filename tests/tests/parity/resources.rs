//! Selectors of resources select the same kinds as in Kopf.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kopf_core::selection::DiscoveredResource;
use kopf_core::selection::resolve::{ResourceDemand, Wanted, resolve};
use kopf_runtime::{
    DynamicObject, EventContext, EventHandler, Namespaces, Operator, Resource, ResourceHandlers,
    RunningOperator, Selector,
};
use kopf_tests::child_process::ChildProcess;
use kopf_tests::{PythonKopf, Sandbox, TestFailure, TestResult, eventually, try_eventually};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

/// The time for Kopf to discover a group and list the objects of a kind before another edit.
const KOPF_DISCOVERY: Duration = Duration::from_secs(2);

/// The objects that each handler got.
#[derive(Default)]
struct EventJournal(Mutex<BTreeSet<String>>);

impl EventJournal {
    fn note(&self, handler: &str, cx: &EventContext<DynamicObject>) {
        let line = format!("{handler} {} {}", cx.resource().name(), cx.name());
        self.0.lock().expect("no thread panics").insert(line);
    }

    fn lines(&self) -> BTreeSet<String> {
        self.0.lock().expect("no thread panics").clone()
    }
}

type Listener = fn(&Arc<EventJournal>, Selector) -> ResourceHandlers;

macro_rules! listener {
    ($name:literal) => {
        |journal, selector| {
            Resource::<DynamicObject, EventJournal>::selected(selector, journal)
                .event(EventHandler::new($name), |journal, cx| {
                    Box::pin(async move {
                        journal.note($name, cx);
                        Ok(())
                    })
                })
                .build()
        }
    };
}

async fn define(sandbox: &Sandbox, kind: &str, below: &str, names: &str) -> TestResult {
    let (singular, group) = (kind.to_lowercase(), format!("{below}{}", sandbox.group()));
    let definition = format!(
        "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {singular}s.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{kind: {kind}, plural: {singular}s, singular: {singular}, {names}}}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
    );
    sandbox.apply(&definition).await?;
    create(sandbox, kind, &group, "first").await
}

async fn create(sandbox: &Sandbox, kind: &str, group: &str, name: &str) -> TestResult {
    let objects = sandbox.objects(&format!("{group}/v1"), kind).await?;
    objects.create(name, json!({"spec": {}})).await?;
    Ok(())
}

/// Both implementations in one sandbox: none of their handlers writes.
struct SelectionRun {
    sandbox: Sandbox,
    /// The category of the toys.
    category: String,
    short_name: String,
    /// A kind that two groups have.
    twin: String,
    kopf: Option<ChildProcess>,
    journal: Arc<EventJournal>,
}

impl SelectionRun {
    async fn open(name: &str) -> Result<Self, TestFailure> {
        let sandbox = Sandbox::open(name).await?;
        let unique = sandbox.namespace().replace('-', "");
        Ok(Self {
            category: sandbox.namespace().to_owned(),
            short_name: format!("d{unique}"),
            twin: format!("Twin{unique}"),
            sandbox,
            kopf: None,
            journal: Arc::default(),
        })
    }

    async fn start(&mut self) -> Result<RunningOperator, TestFailure> {
        let Self {
            sandbox,
            category,
            short_name,
            twin,
            ..
        } = self;
        let identity = sandbox.administrator("kopf");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/scripts/selected.py");
        let kopf = PythonKopf::obtain().await?;
        let kopf = kopf
            .operator(sandbox, &identity, &script)?
            .env("CATEGORY", &*category)
            .env("SHORT_NAME", &*short_name)
            .env("TWIN", &*twin)
            .start()?;
        self.kopf = Some(kopf);
        let group = Selector::everything().in_group(sandbox.group());
        let selections: [(Selector, Listener); 4] = [
            (Selector::category(&*category), listener!("by_category")),
            (group, listener!("by_group")),
            (Selector::any_name(&*short_name), listener!("by_name")),
            (Selector::kind(&*twin), listener!("ambiguous")),
        ];
        let here = Namespaces::Only(vec![sandbox.namespace().to_owned()]);
        let operator = Operator::new("selected").namespaces(here);
        let operator = selections
            .into_iter()
            .fold(operator, |operator, (selector, listener)| {
                operator.resource(listener(&self.journal, selector))
            });
        Ok(operator.spawn(sandbox.client()))
    }

    fn seen_by_kopf(&self) -> BTreeSet<String> {
        let log = self
            .kopf
            .as_ref()
            .map(ChildProcess::log)
            .unwrap_or_default();
        let lines = log.lines().filter_map(|line| line.strip_prefix("SEEN "));
        lines.map(str::to_owned).collect()
    }

    /// Waits until both implementations have reported this.
    async fn both_see(&self, line: &str) -> TestResult {
        self.we_see(line).await?;
        eventually(&format!("Kopf sees {line}"), async || {
            self.seen_by_kopf().contains(line).then_some(())
        })
        .await
    }

    async fn we_see(&self, line: &str) -> TestResult {
        eventually(&format!("the runtime sees {line}"), async || {
            self.journal.lines().contains(line).then_some(())
        })
        .await
    }

    /// The same for objects of a kind that was defined while both ran.
    ///
    /// Kopf ignores the definitions that its watch lists at the start, and discovers the group once
    /// per watch event, which may be before the API server serves the new kind. So the definition
    /// is edited until Kopf has discovered it; the runtime must need no such edit.
    async fn both_see_new_kind(&self, plural: &str, line: &str) -> TestResult {
        self.we_see(line).await?;
        let name = format!("{plural}.{}", self.sandbox.group());
        let definitions: Api<CustomResourceDefinition> = Api::all(self.sandbox.client());
        let mut edits = 0_u32;
        try_eventually(&format!("Kopf sees {line}"), async || {
            if self.seen_by_kopf().contains(line) {
                return Ok(Some(()));
            }
            edits += 1;
            let edit = json!({"metadata": {"annotations": {"edits": edits.to_string()}}});
            let edit = Patch::Merge(edit);
            definitions
                .patch(&name, &PatchParams::default(), &edit)
                .await?;
            tokio::time::sleep(KOPF_DISCOVERY).await;
            Ok(None)
        })
        .await
    }
}

#[tokio::test]
async fn the_same_kinds_are_selected_by_category_group_and_name() -> TestResult {
    let mut run = SelectionRun::open("selected").await?;
    let toys = format!("categories: [{}]", run.category);
    let doll = format!("{toys}, shortNames: [{}]", run.short_name);
    define(&run.sandbox, "Doll", "", &doll).await?;
    define(&run.sandbox, "Kite", "other.", &toys).await?;
    define(&run.sandbox, "Stone", "", "categories: [rocks]").await?;
    let operator = run.start().await?;
    let group = run.sandbox.group().to_owned();
    for line in [
        format!("by_category dolls.{group} first"),
        format!("by_category kites.other.{group} first"),
        format!("by_group stones.{group} first"),
    ] {
        run.both_see(&line).await?;
    }
    define(&run.sandbox, "Later", "", &toys).await?;
    run.both_see_new_kind("laters", &format!("by_category laters.{group} first"))
        .await?;
    run.both_see(&format!("by_group laters.{group} first"))
        .await?;
    let expected = [
        format!("by_category dolls.{group} first"),
        format!("by_category kites.other.{group} first"),
        format!("by_category laters.{group} first"),
        format!("by_group dolls.{group} first"),
        format!("by_group laters.{group} first"),
        format!("by_group stones.{group} first"),
        format!("by_name dolls.{group} first"),
    ];
    let expected = BTreeSet::from(expected);
    assert_eq!(run.seen_by_kopf(), expected);
    assert_eq!(run.journal.lines(), expected);
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_ambiguous_selection_stays_ambiguous_when_other_kinds_are_defined() -> TestResult {
    let mut run = SelectionRun::open("twins").await?;
    let rocks = "categories: [rocks]";
    define(&run.sandbox, &run.twin, "", rocks).await?;
    define(&run.sandbox, &run.twin, "other.", rocks).await?;
    define(&run.sandbox, "Stone", "", rocks).await?;
    let operator = run.start().await?;
    let group = run.sandbox.group().to_owned();
    run.both_see(&format!("by_group stones.{group} first"))
        .await?;
    let ambiguous = format!("ambiguous {}s.{group} first", run.twin.to_lowercase());
    assert!(!run.seen_by_kopf().contains(&ambiguous));
    define(&run.sandbox, "Later", "", rocks).await?;
    run.both_see_new_kind("laters", &format!("by_group laters.{group} first"))
        .await?;
    // Kopf rediscovers one group only, in which the name is not ambiguous.
    eventually("Kopf serves what is ambiguous", async || {
        run.seen_by_kopf().contains(&ambiguous).then_some(())
    })
    .await?;
    let problems = operator.problems().join("; ");
    assert!(problems.contains("so that none is served"), "{problems}");
    assert!(!run.journal.lines().contains(&ambiguous));
    // An unambiguous selector of the same kind still works.
    let by_group = format!("by_group {}s.{group} first", run.twin.to_lowercase());
    assert!(run.journal.lines().contains(&by_group));
    operator.stop().await?;
    Ok(())
}

const SELECT: &str = "
import json, sys
from kopf._cogs.structs.references import EVERYTHING, Resource, Selector
catalog, selectors = json.loads(sys.argv[1])
sets = ('shortcuts', 'categories', 'subresources', 'verbs')
resources = {Resource(**{k: frozenset(v) if k in sets else v for k, v in r.items()}) for r in catalog}
watchable = {r for r in resources if {'list', 'watch'} <= r.verbs}
def select(group, version, sort, name):
    name = {'any_name': EVERYTHING} if sort == 'everything' else {sort: name}
    selector = Selector(group=group, version=version, **name)
    selected = selector.select(watchable)
    if selector.is_specific and len(selected) > 1:
        selected = set()
    return sorted(f'{r.plural}.{r.version}.{r.group}' for r in selected)
print(json.dumps([select(*selector) for selector in selectors]))
";

type Make = fn(&str) -> Selector;

fn resources() -> Vec<DiscoveredResource> {
    let mut resources = Vec::new();
    for (group, versions) in [
        ("", &["v1"][..]),
        ("a", &["v1", "v1beta1"]),
        ("events.k8s.io", &["v1"]),
    ] {
        for (at, version) in versions.iter().enumerate() {
            for (kind, verbs) in [
                ("Pod", "get list watch patch"),
                ("Event", "get list watch patch"),
                ("Review", "create"),
                ("Thing", "get list watch"),
            ] {
                if group.is_empty() && kind == "Thing" {
                    continue;
                }
                let singular = kind.to_lowercase();
                let words = |text: &str| text.split(' ').map(str::to_owned).collect();
                resources.push(DiscoveredResource {
                    group: group.to_owned(),
                    version: (*version).to_owned(),
                    kind: kind.to_owned(),
                    plural: format!("{singular}s"),
                    short_names: words(&singular[..2]),
                    categories: words(if kind == "Pod" { "all" } else { "all some" }),
                    singular,
                    verbs: words(verbs),
                    namespaced: true,
                    preferred: at == 0,
                    ..DiscoveredResource::default()
                });
            }
        }
    }
    resources
}

#[tokio::test]
async fn selectors_select_the_same_resources() -> TestResult {
    let resources = resources();
    let catalog: Vec<_> = resources.iter().cloned().map(Arc::new).collect();
    let seen_by_kopf = resources.iter().map(|it| {
        json!({
            "group": it.group, "version": it.version, "kind": it.kind, "plural": it.plural,
            "singular": it.singular, "shortcuts": it.short_names, "categories": it.categories,
            "verbs": it.verbs, "namespaced": it.namespaced, "preferred": it.preferred,
        })
    });
    let seen_by_kopf: Vec<_> = seen_by_kopf.collect();
    let mut selectors = Vec::new();
    let mut ours = Vec::new();
    let sorts: [(&str, Make); 7] = [
        ("kind", |name| Selector::kind(name)),
        ("plural", |name| Selector::plural(name)),
        ("singular", |name| Selector::singular(name)),
        ("shortcut", |name| Selector::short_name(name)),
        ("any_name", |name| Selector::any_name(name)),
        ("category", |name| Selector::category(name)),
        ("everything", |_| Selector::everything()),
    ];
    for group in [None, Some(""), Some("a"), Some("none")] {
        for version in [None, Some("v1"), Some("v1beta1")] {
            for (sort, make) in sorts {
                for name in [
                    "Pod", "pods", "pod", "po", "events", "Thing", "reviews", "all", "some",
                ] {
                    selectors.push(json!([group, version, sort, name]));
                    let selector = make(name);
                    let selector = match group {
                        Some(group) => selector.in_group(group),
                        None => selector,
                    };
                    ours.push(match version {
                        Some(version) => selector.in_version(version),
                        None => selector,
                    });
                }
            }
        }
    }
    let kopf = PythonKopf::obtain().await?;
    let answer = kopf.evaluate(SELECT, &json!([seen_by_kopf, selectors]).to_string())?;
    let seen_by_kopf: Vec<Vec<String>> = serde_json::from_str(&answer)?;
    assert_eq!(seen_by_kopf.len(), ours.len());
    assert!(
        seen_by_kopf
            .iter()
            .filter(|picked| !picked.is_empty())
            .count()
            > 100
    );
    for (selector, seen_by_kopf) in ours.iter().zip(seen_by_kopf) {
        let demand = ResourceDemand {
            wanted: Wanted::Selected(selector.clone()),
            writes: false,
        };
        let picked = resolve(&[demand], &catalog).served;
        let mut picked: Vec<String> = picked
            .iter()
            .map(|it| {
                format!(
                    "{}.{}.{}",
                    it.resource.plural, it.resource.version, it.resource.group
                )
            })
            .collect();
        picked.sort();
        assert_eq!(picked, seen_by_kopf, "{selector}");
    }
    Ok(())
}
