//! The stable codes of all diagnostics, with the texts that `kopf-gen explain` prints.

use std::fmt;
use std::str::FromStr;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $id:literal,)+) => {
        /// The stable code of a diagnostic.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The code as it is printed.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$name => $id,)+
                }
            }

            /// The problem, why it matters, and the way to correct it.
            #[must_use]
            pub const fn explanation(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($doc, "\n",)+),)+
                }
            }
        }
    };
}

codes! {
    /// A file could not be read.
    ///
    /// The path does not exist, may not be read, or its bytes are not UTF-8.
    Unreadable = "KG0101",
    /// The text is not valid YAML or JSON.
    ///
    /// The caret shows where the parser stopped, which is at or shortly after the mistake. Usual
    /// causes are a wrong indentation, a tab, an unclosed quote, or a template that was not
    /// rendered: `{{ ... }}` is Helm's, not YAML. Render charts first with `helm template`.
    YamlSyntax = "KG0102",
    /// A key occurs twice in one mapping.
    ///
    /// YAML readers disagree on which of the two counts. Remove one.
    DuplicateKey = "KG0103",
    /// A mapping key is not a string.
    ///
    /// Keys of Kubernetes objects are strings. A mapping as a key usually comes from a template
    /// that was not rendered: `{{ ... }}` is Helm's, not YAML.
    KeyNotString = "KG0104",
    /// A key is a boolean in YAML 1.1.
    ///
    /// `y`, `n`, `yes`, `no`, `on` and `off`, without quotes, are booleans for kubectl and the API
    /// server, which then read the key `true` or `false`. Other readers keep the word. Quote it.
    BooleanKey = "KG0105",
    /// An alias is too large, refers to itself or to nothing, or cannot be merged.
    ///
    /// `*name` repeats what `&name` marks. Aliases of aliases grow exponentially, so their total
    /// size is limited; `<<` takes a mapping or a list of mappings.
    BadAlias = "KG0106",
    /// The document is nested too deeply.
    ///
    /// The limit is far beyond what the API server itself accepts.
    TooDeep = "KG0107",
    /// The document is not a CustomResourceDefinition and was skipped.
    ///
    /// Files may hold other objects as well; only the definitions among them are used.
    NotACrd = "KG0201",
    /// A field of the CustomResourceDefinition is missing or has the wrong type.
    ///
    /// The API server would reject this definition.
    InvalidCrd = "KG0202",
    /// The name of the CustomResourceDefinition is not `<plural>.<group>`.
    ///
    /// The API server rejects such a definition, so it cannot be part of an operator. `--fix-names`
    /// corrects the name: `new` and `generate` write the corrected definition to `crds/`, `types`
    /// embeds it.
    CrdName = "KG0203",
    /// No version of the CustomResourceDefinition can be used.
    ///
    /// kopf-gen writes types for versions with `served: true`, or for those that `--version` names.
    NoVersion = "KG0204",
    /// Two inputs define the same CustomResourceDefinition.
    ///
    /// Only one of them can be used. Pass the file that is installed in the cluster.
    DuplicateCrd = "KG0205",
    /// No CustomResourceDefinition was found in the inputs.
    ///
    /// Pass files, folders or globs that contain at least one.
    NothingFound = "KG0206",
    /// The definition uses `apiextensions.k8s.io/v1beta1` and was upgraded.
    ///
    /// Kubernetes 1.22 and later accept only `v1`. The types are those of the upgraded `v1` form. An
    /// operator needs a definition that can be installed: with `--fix-names`, `new` and `generate`
    /// write the `v1` form to `crds/`.
    OldCrd = "KG0207",
    /// A name breaks the rules of the API server.
    ///
    /// The API server rejects a definition with such a name, and generated code and permissions
    /// contain the name. The message repeats the reason of the API server.
    InvalidName = "KG0208",
    /// A definition rejects or drops what an earlier one accepted.
    ///
    /// `kopf-gen validate --against REV` compares the definitions with those of a revision in git.
    /// Objects that are stored in the cluster were accepted by the earlier definition: a field that
    /// is gone is dropped from them when they are read. An object that does not fit keeps its
    /// values; a request that changes such a value is rejected, and handlers are not called for an
    /// object that does not fit its Rust type. Kubernetes before 1.30 rejects every write to such
    /// an object, those of the operator included. Keep the old field beside the new one, make new
    /// fields optional or give them a default, and repair the objects before you tighten a field.
    BreakingChange = "KG0209",
    /// A schema is not structural.
    ///
    /// The API server rejects a `v1` definition in which a value has no `type` (unless it is
    /// int-or-string or preserves unknown fields), or which uses `$ref`, `definitions`, and the
    /// like. Such a value gets the type of any JSON value.
    NotStructural = "KG0301",
    /// A keyword of a schema has a value of the wrong type.
    ///
    /// For example a string where a list is expected. The API server would reject it.
    InvalidSchema = "KG0302",
    /// `required` names a property that is not declared.
    ///
    /// The API server prunes undeclared properties, so no object is valid unless something else
    /// adds the property. The type does not have it.
    UndeclaredRequired = "KG0303",
    /// The API server rejects this definition.
    ///
    /// The message has the reason of the API server. The crate is generated, because its types can
    /// be right nevertheless, but the definition cannot be installed until you correct it. CEL
    /// rules are not checked; only the API server does that.
    RejectedDefinition = "KG0304",
    /// An option refers to a path that the schema does not have.
    ///
    /// Paths look like `spec.template.containers[].name`; `[]` is an item of an array and `{}` a
    /// value of a map.
    UnknownPath = "KG0401",
    /// An option has a value that cannot be used.
    ///
    /// Names must be Rust identifiers, types must be Rust types.
    InvalidOption = "KG0402",
    /// The manifest has a key that does not exist.
    ///
    /// Unknown keys are errors because a mistyped option would silently do nothing. The message
    /// names the nearest known key; `kopf-gen schema` prints all of them for your editor.
    ManifestUnknownKey = "KG0501",
    /// The manifest lacks a required key.
    ///
    /// A manifest has `apiVersion` and `operator`; an operator has a `name`; a handler has `on`,
    /// which says when it is called, and `fn`, the name of its function; or it is a `timer` or a
    /// `daemon`, which name their function themselves.
    ManifestMissing = "KG0502",
    /// A value in the manifest has the wrong type.
    ///
    /// For example a list where a mapping is expected, or a number where a label value is
    /// expected: `"1"` with quotes is a string.
    ManifestType = "KG0503",
    /// A value in the manifest is not allowed there.
    ///
    /// The message lists the allowed values.
    ManifestValue = "KG0504",
    /// The manifest has a setting that only Kopf has.
    ///
    /// The message names its replacement, if there is one. `docs/settings.md` has the table of all
    /// settings.
    KopfOnlySetting = "KG0506",
    /// `on` names triggers that cannot be combined.
    ///
    /// `create`, `update`, `delete` and `resume` can be combined, and the context has the one that
    /// applies. `field`, `event`, `reconcile` and `child` stand alone.
    HandlerTriggers = "KG0601",
    /// A handler has an option that is for other handlers.
    ///
    /// `optional` is for delete handlers, `deleted` for resume handlers; `value`, `old` and `new`
    /// need a `field`, and `value` excludes the other two. A timer needs `interval` or `idle`, and
    /// `sharp` needs `interval`; `initial_delay` is for timers and daemons, `cancellation_…` for
    /// daemons. `on: reconcile` can have `interval` and `status`, and `on: child` needs `kind`; both
    /// are called for the object as a whole, so that they have no `field` and no `result`: in
    /// `reconcile`, `cx.set_result` takes a value of any type.
    HandlerOption = "KG0602",
    /// The name of a function is not a Rust name.
    ///
    /// `fn`, `when` and `predicate` become methods. The id in the annotations of objects can be any
    /// other text: give it with `id`.
    HandlerName = "KG0603",
    /// Two handlers of a kind have the same id, or need one function with two signatures.
    ///
    /// An object keeps the progress of a handler under its id (with `/field.path` for handlers with
    /// a field), so ids are unique within a kind. Two handlers may name the same function if each
    /// has its own `id`, and if both give it the same context and the same sort of `param`. Give one
    /// of them another `id` or `fn`.
    DuplicateHandler = "KG0604",
    /// A field path does not exist in the schema of the kind.
    ///
    /// The API server prunes fields that the schema does not have, so the handler would never be
    /// called. Below `x-kubernetes-preserve-unknown-fields` any path is accepted.
    UnknownField = "KG0605",
    /// The manifest names a kind that does not exist.
    ///
    /// `crd` is a file that defines the kind, and `kind` chooses one if it defines several;
    /// `builtin` is the `apiVersion` and kind of a kind of Kubernetes itself, such as
    /// `v1/Pod` or `batch/v1/Job`.
    UnknownKind = "KG0606",
    /// The name of the operator is invalid.
    ///
    /// It names the crate and all objects of the deployment: lower-case letters, digits and dashes,
    /// starting with a letter, at most 63 of them.
    OperatorName = "KG0607",
    /// The manifest names the same kind twice.
    ///
    /// All handlers of a kind belong in one entry.
    DuplicateKind = "KG0608",
    /// A filter can never match.
    ///
    /// The schema does not allow the value in the field: it has another type, is none of the `enum`,
    /// or is outside of `minimum`, `maxLength`, `pattern` and the like; or no object can have such a
    /// label or annotation. The handler would never be called. `old` causes a warning only, because
    /// an object may still have a value from a time when the schema allowed it; mutating webhooks
    /// get objects before the API server validates them. To match values that the schema does not
    /// allow, write `{predicate: name}`.
    FilterValue = "KG0609",
    /// The deletion of objects waits for a handler.
    ///
    /// The operator puts a finalizer on every object that a delete handler, a timer or a daemon
    /// matches, until the timer or daemon has ended for the object. The finalizer goes when the
    /// delete handlers are done and the timers and daemons have stopped. While the operator does
    /// not run, such objects cannot be deleted, nor can their namespaces. A delete handler with
    /// `optional: true` adds no finalizer, and is called only if something else adds one. A timer or
    /// a daemon cannot do without; filters narrow it to the objects that match. Objects with
    /// children in another namespace, or outside of all namespaces, have it, too. Before you
    /// uninstall the operator, delete the objects while it runs, or release them with
    /// `kopf-gen unstick`.
    HoldsDeletion = "KG0610",
    /// The API server prunes the results of handlers.
    ///
    /// The operator writes the result of a handler, set with `cx.set_result`, to `status.<its id>`.
    /// The schema of the kind does not have that field, so the API server drops it without an error.
    /// Add the field to the schema, or `x-kubernetes-preserve-unknown-fields: true` to `status`.
    /// Handlers without results, or that write fields of the status that the schema has, need
    /// neither.
    PrunedResults = "KG0611",
    /// The manifest handles two versions of a kind.
    ///
    /// Both versions have the same objects, so the operator handles every object twice, and both
    /// sets of handlers keep their progress on it.
    TwoVersions = "KG0612",
    /// A webhook has neither `validate` nor `mutate`, or both.
    ///
    /// An entry of `admission` names its function with `validate`, which admits or denies, or with
    /// `mutate`, which may also change the object; not with both, because the API server calls the
    /// two sorts at different times.
    WebhookRole = "KG0620",
    /// The API server rejects requests while the operator does not answer.
    ///
    /// A webhook on a kind that the cluster itself needs can make the cluster unusable: if Pods
    /// cannot be created, neither can those of the operator. Namespaces of the system and the
    /// operator's own are always left out; with `ignore_failures: true` the API server admits
    /// requests everywhere while the operator does not answer.
    BlockingWebhook = "KG0621",
    /// `deploy/kustomization.yaml` does not list the files that kopf-gen generates.
    ///
    /// The file is yours, and lists what `kubectl apply -k deploy` applies: `../crds`, the
    /// definitions, and `base`, which follows from `kopf.yaml`. In crates of earlier versions it
    /// lists each generated file. A new handler can add one, such as `deploy/webhooks.yaml`: add it
    /// to the `resources` there. When you remove the last such handler, kopf-gen deletes the file,
    /// and the list must no longer name it. With `tool: helm` there is no `base`: delete the file, or
    /// write `tool: both`.
    DeploymentList = "KG0622",
    /// The crate has files that new crates do without.
    ///
    /// Earlier versions of kopf-gen copied all CRDs to `deploy/crds.yaml`, wrote a test that only
    /// printed their names, and kept the JSON Schema of `kopf.yaml` in the crate. They also left the
    /// Deployment to the user, and put the generated files beside it. Now `deploy/kustomization.yaml`
    /// names `crds/` and `deploy/base/`, and `kopf-gen schema --write` writes the schema for those
    /// whose editors use it. Nothing breaks if you keep the old files, but then changes of
    /// `kopf.yaml` do not reach the Deployment.
    OldLayout = "KG0623",
    /// Webhooks are not called while no operator runs.
    ///
    /// The operator removes its webhooks from the cluster when it stops, so that requests still
    /// work; they are not checked then. With `persistent: true` a webhook stays configured, and the
    /// API server rejects the requests in that time, or admits them with `ignore_failures: true`.
    /// `persistent: false` says that unchecked requests are fine, and ends this note.
    UncheckedRequests = "KG0624",
    /// A kind without a watch has a memo.
    ///
    /// The operator keeps the memo of an object as long as it watches the object. It does not watch
    /// a kind that has only webhooks, so each of their calls begins with an empty memo.
    UselessMemo = "KG0625",
    /// A kind without handlers of changes has `track: always`.
    ///
    /// `track: always` keeps the last handled state on every object of a kind, so that an object
    /// that begins to match the filters of a handler is compared with its former state. That costs
    /// a write for each change of each object, and only handlers of changes use it.
    UselessTracking = "KG0626",
    /// The pod of the operator has less time to stop than `settings.shutdown` takes.
    ///
    /// Kubernetes kills a pod 30 seconds after the signal to stop, or after the
    /// `terminationGracePeriodSeconds` of the pod. An operator that is killed has not called its
    /// cleanup handlers, and may have interrupted others. kopf-gen sets the time in `deploy/base/`;
    /// in a crate of an earlier version `deploy/deployment.yaml` is yours: change the time there.
    PodGrace = "KG0627",
    /// `deploy/kustomization.yaml` contradicts `kopf.yaml`.
    ///
    /// What follows from `kopf.yaml` is in `deploy/base/`: the arguments of the operator, its
    /// replicas, its permissions. `deploy/kustomization.yaml` is yours and may change all of it, but
    /// more than one replica needs `leader_election`.
    DeploymentDrift = "KG0628",
    /// An option of `peering` or `leader_election` is invalid.
    ///
    /// A leader must stop before another one begins: `retry_period` < `renew_deadline` <
    /// `lease_duration`. Lifetimes and lease durations are whole seconds, because other programs
    /// read them as such. Peerings and Leases are objects, and their names follow the rules for
    /// objects.
    PeersOption = "KG0630",
    /// An option of `deploy` is invalid.
    ///
    /// `image` is what the kubelet pulls: a registry, a repository, and a tag or a digest. More than
    /// one of the `replicas` needs `leader_election`, because operators that do not know of each
    /// other handle every object at once.
    DeployOption = "KG0631",
    /// The types of an index are invalid.
    ///
    /// `keys` and `values` are Rust types that own what they hold: `String` and not `&str`. Keys can
    /// be compared for equality and hashed, so there are no floating-point numbers in them. Types
    /// of the standard library and of the operator's kinds need no path; write a type of your own
    /// with its path, such as `crate::handlers::PodInfo`. All kinds in one index have the same types
    /// there.
    IndexType = "KG0640",
    /// The type of a result or of a parameter is invalid.
    ///
    /// `result` and `param_type` are Rust types that own what they hold: `String` and not `&str`.
    /// serde can write a result, and can read a parameter. Types of the standard library and of the operator's kinds need no path; write a type
    /// of your own with its path, such as `crate::handlers::Usage`.
    HandlerType = "KG0641",
    /// A selection is invalid.
    ///
    /// `select` selects kinds in one way: by `kind`, `plural`, `singular`,
    /// `short_name`, `any_name` or `category`; `group` and `version` can be added to each of them.
    /// A `group` alone selects all of its kinds, and `select: everything` all kinds of the cluster.
    /// Names are case-sensitive, and only that of the core group is empty.
    Selection = "KG0650",
    /// Handlers of a wide selection write to many objects.
    ///
    /// Handlers of changes keep their progress in annotations of each object, and delete handlers,
    /// timers and daemons add a finalizer. On a category, a group or everything, that is every
    /// object of every such kind, also in namespaces of the system. Restrict the handlers with
    /// `labels` or `when`; `on: event` writes nothing.
    WideWrites = "KG0651",
    /// The webhooks of a selection need a configuration that the operator writes.
    ///
    /// Only the cluster knows the kinds of a selection. The operator lists them in the webhook
    /// configuration while it runs, and a file for cert-manager cannot. Name the kinds with `crd` or
    /// `builtin`, or leave out `configuration: cert-manager`.
    SelectedWebhook = "KG0652",
    /// The permissions of the operator are as wide as its selection.
    ///
    /// Only the cluster knows the kinds of a category, a kind or a short name, and permissions name
    /// plurals. So `deploy/base/rbac.yaml` allows all kinds of the group, or of all groups. A `group`
    /// narrows that, and `plural` with `group` makes it exact.
    WidePermissions = "KG0653",
    /// Two handlers with the same id may handle the same objects.
    ///
    /// A selection can include a kind that the manifest names elsewhere, or that another selection
    /// includes. One watch then serves both, and an object keeps the progress of each handler under
    /// its id: give one of them another `id` or `fn`.
    SelectionOverlap = "KG0654",
    /// A kind cannot be a child here.
    ///
    /// An entry of `children` is a kind that objects of another kind own, each kind once: an object
    /// cannot own objects of its own kind, because each of them would own further ones. A selection
    /// has no children, because its objects have no kind of their own.
    ChildKind = "KG0660",
    /// An option of a child contradicts another one, or the kind.
    ///
    /// `plural` and `scope` are for a custom kind without a definition: `crd` has both, and so do
    /// the kinds of Kubernetes itself. `one_at_a_time` says in which order the operator updates
    /// children, and with `update: on-delete` it updates none.
    ChildOption = "KG0661",
    /// `on: child` names a kind that is not a child.
    ///
    /// The operator watches the kinds in `children`, and has permissions for them alone. Add the
    /// kind there, or correct the name: it is that of the entry, such as `apps/v1/Deployment`.
    UndeclaredChild = "KG0662",
    /// Objects use others, and no handler is called for it.
    ///
    /// `uses` calls the `reconcile` handler of the kind when an object that is referred to changes,
    /// appears or is gone. Without such a handler the watch would be for nothing.
    UselessUse = "KG0663",
    /// A file of yours is not valid Rust.
    ///
    /// kopf-gen parses your files to add stubs, so it cannot add any to a file that does not parse.
    /// Nothing was written. Correct the file and run the command again.
    UserFileSyntax = "KG0701",
    /// Nothing implements the handlers of a kind.
    ///
    /// The methods of a kind belong in an `impl <Kind>Handlers for ...` block. It may be in any file
    /// below `src/`, but not in a macro, because kopf-gen adds stubs to the block.
    NoHandlersImpl = "KG0702",
    /// A method of yours is no longer a handler.
    ///
    /// The manifest no longer names it. kopf-gen never deletes your code: the method stays until you
    /// remove it, and the compiler rejects it because the trait does not have it.
    LeftOverHandler = "KG0703",
    /// A handler applies a kind that is not declared as a child.
    ///
    /// The operator gets permissions for the kinds in `children`, and for none that only a handler
    /// names. Add the kind to `children`, or grant `get`, `create` and `patch` in a file of your own.
    /// kopf-gen finds `cx.apply(child)` where the text of the file shows the type of the child; the
    /// compiler rejects such a child of `reconcile`.
    UndeclaredApply = "KG0704",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// The text is not a code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no such code; `kopf-gen explain` lists all")]
pub struct UnknownCode;

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.id().eq_ignore_ascii_case(text))
            .ok_or(UnknownCode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_sorted_and_parse_back() {
        assert!(Code::ALL.is_sorted_by_key(|code| code.id()));
        for code in Code::ALL {
            assert_eq!(code.id().parse(), Ok(*code));
            assert_eq!(code.id().to_lowercase().parse(), Ok(*code));
        }
        assert!("KG9999".parse::<Code>().is_err());
    }

    #[test]
    fn explanations_start_with_a_sentence() {
        for code in Code::ALL {
            let first = code.explanation().lines().next().unwrap_or_default();
            assert!(first.ends_with('.'), "{code}: {first}");
        }
    }
}
