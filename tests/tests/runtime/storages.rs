//! Storage of progress and diffbase: custom storages, objects too big for a copy, and schemas that
//! prune fields.

use std::sync::Arc;
use std::time::Duration;

use kopf_runtime::storage::{
    AnnotationsDiffBase, AnnotationsProgress, Baseline, DiffBaseStorage, Essence, FieldPath,
    HandlerId, ObjectPatch, ObjectView, Persistence, ProgressStorage, Record,
};
use kopf_runtime::{
    ChangeHandler, DiffBaseStore, HandlerError, Old, On, PersistenceSettings, ProgressStore,
    Settings,
};
use kopf_tests::child_process::Ending;
use kopf_tests::{Sandbox, TestResult};
use kube::ResourceExt as _;
use serde_json::json;

use crate::fixture::{HandlerFixture, LAST_HANDLED, records};

/// A custom storage in one field of the spec, which no provided storage uses.
#[derive(Debug)]
struct SpecFieldStorage;

const SEEN: &str = "seen";
const TOUCH: &str = "touch";

impl SpecFieldStorage {
    fn path(name: &str) -> FieldPath {
        FieldPath::new(["spec", "drawer", name])
    }

    fn write(name: &str, text: Option<&str>, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        match text {
            Some(text) => patch.set(&Self::path(name), text.into()),
            None => patch.purge(&Self::path(name), view),
        }
    }

    fn read(name: &str, view: ObjectView<'_>) -> Option<String> {
        let text = Self::path(name).resolve(view.body())?.as_str()?;
        Some(text.to_owned())
    }
}

impl ProgressStorage for SpecFieldStorage {
    fn fetch(&self, id: &HandlerId, view: ObjectView<'_>) -> Option<Record> {
        Record::from_json(Self::path(id.as_str()).resolve(view.body())?)
    }

    fn store(&self, id: &HandlerId, record: &Record, _: ObjectView<'_>, patch: &mut ObjectPatch) {
        patch.set(&Self::path(id.as_str()), record.to_json_with_nulls());
    }

    fn purge(&self, id: &HandlerId, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        patch.purge(&Self::path(id.as_str()), view);
    }

    fn touch(&self, value: Option<&str>, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        Self::write(TOUCH, value, view, patch);
    }

    fn clear(&self, essence: &mut Essence) {
        essence.remove(&FieldPath::new(["spec", "drawer"]));
    }

    fn fetch_handled_states(&self, view: ObjectView<'_>) -> Option<String> {
        Self::read(SEEN, view)
    }

    fn store_handled_states(
        &self,
        notes: Option<&str>,
        view: ObjectView<'_>,
        patch: &mut ObjectPatch,
    ) {
        Self::write(SEEN, notes, view, patch);
    }

    fn handled_states_budget(&self, _: ObjectView<'_>, _: &ObjectPatch) -> usize {
        4096
    }
}

impl DiffBaseStorage for SpecFieldStorage {
    fn fetch(&self, view: ObjectView<'_>) -> Baseline {
        let text = Self::read("base", view);
        let state = text.and_then(|text| serde_json::from_str(&text).ok());
        state.map_or(Baseline::Absent, |state| {
            Baseline::Known(Essence::from_value(state))
        })
    }

    fn store(&self, state: &Baseline, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        let text = match state {
            Baseline::Known(essence) => Some(essence.as_value().to_string()),
            Baseline::Absent | Baseline::Hashed(_) => None,
        };
        Self::write("base", text.as_deref(), view, patch);
    }

    fn clear(&self, essence: &mut Essence, _: ObjectView<'_>) {
        ProgressStorage::clear(self, essence);
    }
}

#[tokio::test]
async fn progress_and_diffbase_are_kept_in_a_custom_storage() -> TestResult {
    let mut fixture = HandlerFixture::new("drawer").await?;
    fixture.script("second", |cx| match cx.retry() {
        0 => Err(HandlerError::temporary_after(
            Duration::from_millis(500),
            "not yet",
        )),
        _ => Ok(()),
    });
    let settings = Settings {
        persistence: Persistence {
            progress: Arc::new(SpecFieldStorage),
            diffbase: Arc::new(SpecFieldStorage),
            ..Persistence::default()
        },
        ..Settings::default()
    };
    let handlers = || {
        [
            ChangeHandler::new("first", On::create()),
            ChangeHandler::new("second", On::create()),
            ChangeHandler::new("update_fn", On::update()),
        ]
    };
    let operator = fixture.start_with(fixture.handlers(handlers()), settings.clone());
    let operator = operator.await?;
    fixture.create("one", 1).await?;
    let storage_field = |it: &kube::api::DynamicObject| it.data["spec"]["drawer"].clone();
    fixture
        .objects
        .wait_until("one", "the progress is in the drawer", |it| {
            storage_field(it)["first"]["success"] == true
                && storage_field(it)["second"]["retries"] == 1
        })
        .await?;
    let handled = |size: u32| {
        move |it: &kube::api::DynamicObject| {
            let base = storage_field(it)["base"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            base == format!(r#"{{"spec":{{"size":{size}}}}}"#)
                && storage_field(it)
                    .as_object()
                    .is_some_and(|it| it.len() == 1)
        }
    };
    let one = fixture
        .objects
        .wait_until("one", "only the state is left", handled(1))
        .await?;
    assert!(one.annotations().is_empty(), "{:?}", one.annotations());
    operator.stop().await?;
    let names = |fixture: &mut HandlerFixture| -> Vec<String> {
        let calls = fixture.calls_so_far().into_iter();
        calls.map(|call| call.handler).collect()
    };
    assert_eq!(names(&mut fixture), ["first", "second", "second"]);

    let edit = json!({"spec": {"size": 2}});
    fixture.objects.merge("one", edit).await?;
    let operator = fixture.start_with(fixture.handlers(handlers()), settings);
    let operator = operator.await?;
    fixture
        .objects
        .wait_until("one", "the change is handled", handled(2))
        .await?;
    assert_eq!(names(&mut fixture), ["update_fn"]);
    operator.stop().await
}

#[tokio::test]
async fn objects_move_from_one_storage_to_another_without_repeated_calls() -> TestResult {
    let mut fixture = HandlerFixture::new("moved").await?;
    let former = || PersistenceSettings {
        prefix: "former.example.com".to_owned(),
        diffbase: DiffBaseStore::Annotation("former.example.com/handled".to_owned()),
        ..PersistenceSettings::default()
    };
    let both = PersistenceSettings {
        prefix: "moved.example.com".to_owned(),
        progress: ProgressStore::Several(vec![
            ProgressStore::Annotations,
            ProgressStore::AnnotationsUnder(former().prefix),
        ]),
        diffbase: DiffBaseStore::Several(vec![
            DiffBaseStore::Field("status.moved.handled".to_owned()),
            former().diffbase,
        ]),
        ..PersistenceSettings::default()
    };
    let handlers = || {
        [
            ChangeHandler::new("create_fn", On::create()),
            ChangeHandler::new("update_fn", On::update()),
        ]
    };
    let settings = |persistence: PersistenceSettings| Settings {
        persistence: persistence.into(),
        ..Settings::default()
    };
    let handled = |name: &'static str| {
        move |it: &kube::api::DynamicObject| it.annotations().contains_key(name)
    };
    let operator = fixture.start_with(fixture.handlers(handlers()), settings(former()));
    let operator = operator.await?;
    fixture.create("one", 1).await?;
    let written = handled("former.example.com/handled");
    fixture
        .objects
        .wait_until("one", "it is handled", written)
        .await?;
    operator.stop().await?;

    let operator = fixture.start_with(fixture.handlers(handlers()), settings(both));
    let operator = operator.await?;
    let edit = json!({"spec": {"size": 2}});
    fixture.objects.merge("one", edit).await?;
    let state = r#"{"spec":{"size":2}}"#;
    fixture
        .objects
        .wait_until("one", "both storages have the state", |it| {
            let former = it.annotations().get("former.example.com/handled");
            it.data["status"]["moved"]["handled"] == state
                && former.is_some_and(|former| former.trim_end() == state)
        })
        .await?;
    let calls = fixture.calls_so_far().into_iter();
    let names: Vec<String> = calls.map(|call| call.handler).collect();
    assert_eq!(names, ["create_fn", "update_fn"]);
    operator.stop().await
}

/// Kopf's choice, without the field that this operator does not care about.
#[derive(Debug)]
struct WithoutNoise(AnnotationsDiffBase);

impl DiffBaseStorage for WithoutNoise {
    fn fetch(&self, view: ObjectView<'_>) -> Baseline {
        self.0.fetch(view)
    }

    fn store(&self, state: &Baseline, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        self.0.store(state, view, patch);
    }

    fn clear(&self, essence: &mut Essence, view: ObjectView<'_>) {
        self.0.clear(essence, view);
    }

    fn build(&self, mut essence: Essence, _: ObjectView<'_>) -> Essence {
        essence.remove(&FieldPath::new(["spec", "noise"]));
        essence
    }
}

#[tokio::test]
async fn a_custom_storage_chooses_the_part_of_an_object_that_is_handled() -> TestResult {
    let mut fixture = HandlerFixture::new("noise").await?;
    let settings = Settings {
        persistence: Persistence {
            diffbase: Arc::new(WithoutNoise(AnnotationsDiffBase::default())),
            ..Persistence::default()
        },
        ..Settings::default()
    };
    let handlers = [
        ChangeHandler::new("create_fn", On::create()),
        ChangeHandler::new("update_fn", On::update()),
    ];
    let operator = fixture.start_with(fixture.handlers(handlers), settings);
    let operator = operator.await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_call().await.handler, "create_fn");
    let noise = json!({"spec": {"noise": 1}});
    fixture.objects.merge("one", noise).await?;
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    fixture
        .objects
        .wait_until("one", "the change is handled", |it| {
            let state = it.annotations().get(LAST_HANDLED);
            state.is_some_and(|state| state.trim_end() == r#"{"spec":{"size":2}}"#)
        })
        .await?;
    let calls = fixture.calls_so_far().into_iter();
    let names: Vec<String> = calls.map(|call| call.handler).collect();
    assert_eq!(names, ["update_fn"]);
    operator.stop().await
}

/// A text that cannot be compressed.
fn noise(length: usize, seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.alphanumeric())
        .take(length)
        .collect()
}

#[tokio::test]
async fn objects_too_big_for_a_stored_copy_are_handled_too() -> TestResult {
    let mut fixture = HandlerFixture::new("big").await?;
    fixture.script("update_fn", |cx| {
        let known = matches!(cx.old_raw(), Old::Known(_));
        let mut paths: Vec<String> = cx.diff().iter().map(|it| it.path.to_string()).collect();
        paths.sort();
        Ok(cx.set_result(&json!({"known": known, "paths": paths}))?)
    });
    let handlers = fixture.handlers([
        ChangeHandler::new("create_fn", On::create()),
        ChangeHandler::new("update_fn", On::update()),
    ]);
    let operator = fixture.start(handlers).await?;
    for (name, kibibytes, known) in [("fits", 100, true), ("exceeds", 600, false)] {
        let blob = noise(kibibytes * 1024, 1);
        let body = json!({"spec": {"size": 1, "blob": blob}});
        fixture.objects.create(name, body).await?;
        assert_eq!(fixture.next_call().await.handler, "create_fn");
        fixture
            .objects
            .wait_until(name, "its creation is handled", is_handled)
            .await?;
        fixture
            .objects
            .merge(name, json!({"spec": {"size": 2}}))
            .await?;
        assert_eq!(fixture.next_call().await.handler, "update_fn");
        let one = fixture
            .objects
            .wait_until(name, "its change is handled", |it| {
                !it.data["status"]["update_fn"].is_null() && is_handled(it)
            })
            .await?;
        let result = json!({"known": known, "paths": ["spec.size"]});
        assert_eq!(one.data["status"]["update_fn"], result);
        let annotations = one.annotations().iter();
        let bytes: usize = annotations.map(|(key, text)| key.len() + text.len()).sum();
        assert!(bytes < 256 * 1024, "{bytes} bytes");
    }
    assert_eq!(fixture.calls_so_far(), []);
    operator.stop().await
}

/// Whether the object has a last handled state in some form, and no progress.
fn is_handled(object: &kube::api::DynamicObject) -> bool {
    let mut ours = object
        .annotations()
        .keys()
        .filter_map(|key| key.strip_prefix("kopf.zalando.org/"));
    ours.clone().count() > 0 && ours.all(|name| name.starts_with("last-handled-"))
}

#[tokio::test]
async fn fields_that_the_schema_prunes_are_reported_and_the_object_is_handled() -> TestResult {
    let sandbox = Sandbox::open("pruned").await?;
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let status = json!({"type": "object", "properties": {"flaky": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {"spec": any, "status": status}});
    let objects = sandbox.define_with("Widget", schema).await?;
    let identity = sandbox.administrator("pruned");
    let operator = sandbox
        .operator(env!("CARGO_BIN_EXE_flaky-operator"), &identity)?
        .env("FLAKY_GROUP", sandbox.group())
        .arg("--namespace")
        .arg(sandbox.namespace())
        .start()?;
    objects.create("one", json!({"spec": {"size": 1}})).await?;
    let handled = objects
        .wait_until("one", "it is handled", |it| {
            it.annotations().contains_key(LAST_HANDLED) && records(it).is_empty()
        })
        .await?;
    assert_eq!(handled.data["status"], json!({"flaky": 1}));
    let log = operator.log();
    let named = "written, but not kept by the API server: status.quick;";
    assert!(log.contains(named), "{log}");
    assert!(!log.contains("status.flaky"), "{log}");
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn a_handler_whose_record_has_all_entries_is_called_again_in_time() -> TestResult {
    let mut fixture = HandlerFixture::new("verbose-records").await?;
    fixture.script("create_fn", |cx| match cx.retry() {
        0 => Err(HandlerError::temporary_after(
            Duration::from_secs(1),
            "once more",
        )),
        _ => Ok(()),
    });
    let mut progress = AnnotationsProgress::default();
    progress.form.v1 = false;
    progress.verbose = true;
    let mut settings = Settings::default();
    settings.persistence.progress = Arc::new(progress);
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = fixture.start_with(handlers, settings).await?;
    fixture.create("one", 1).await?;
    let waiting = fixture
        .objects
        .wait_until("one", "the record is written", |it| !records(it).is_empty())
        .await?;
    let record = &records(&waiting)["create_fn"];
    assert_eq!(
        (&record["stopped"], &record["retries"]),
        (&json!(null), &json!(1))
    );
    assert!(
        record
            .as_object()
            .is_some_and(|it| it.contains_key("subrefs"))
    );
    fixture.wait_until_handled("one", 1).await?;
    operator.stop().await
}
