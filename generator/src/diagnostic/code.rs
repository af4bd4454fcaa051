//! The stable codes of all problems, with the text that `kopf-gen explain` prints.

use std::fmt;
use std::str::FromStr;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $id:literal,)+) => {
        /// The stable code of a kind of problem.
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

            /// What the problem is, why it matters and what to do about it.
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
    /// The caret shows where the reader gave up, which is at or shortly after the mistake. Usual
    /// causes are a wrong indentation, a tab, an unclosed quote, or a template that was not
    /// rendered: `{{ ... }}` is Helm's, not YAML. Render charts first with `helm template`.
    YamlSyntax = "KG0102",
    /// A key occurs twice in one mapping.
    ///
    /// Readers disagree on which of the two counts. Remove one.
    DuplicateKey = "KG0103",
    /// A mapping key is not a string.
    ///
    /// Keys of Kubernetes objects are strings. A mapping as a key usually comes from a template
    /// that was not rendered: `{{ ... }}` is Helm's, not YAML.
    KeyNotString = "KG0104",
    /// A key is a boolean in YAML 1.1.
    ///
    /// `y`, `n`, `yes`, `no`, `on` and `off`, without quotes, are booleans for kubectl and the API
    /// server, which then see the key `true` or `false`. Other readers see the word. Quote it.
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
    /// The API server would refuse this definition.
    InvalidCrd = "KG0202",
    /// The name of the CustomResourceDefinition is not `<plural>.<group>`.
    ///
    /// The API server refuses such a definition. With `--fix-names` the name is corrected in the
    /// embedded definition.
    CrdName = "KG0203",
    /// No version of the CustomResourceDefinition can be used.
    ///
    /// Types are made for versions with `served: true`, or for the ones asked for by name.
    NoVersion = "KG0204",
    /// Two inputs define the same CustomResourceDefinition.
    ///
    /// Only one of them can be meant. Pass the file that is installed in the cluster.
    DuplicateCrd = "KG0205",
    /// No CustomResourceDefinition was found in the inputs.
    ///
    /// Pass files, folders or globs that contain at least one.
    NothingFound = "KG0206",
    /// The definition uses `apiextensions.k8s.io/v1beta1` and was upgraded.
    ///
    /// Kubernetes 1.22 and later only know `v1`. The types and the embedded definition are those
    /// of the upgraded `v1` form.
    OldCrd = "KG0207",
    /// A schema is not structural.
    ///
    /// The API server refuses a `v1` definition in which a value has no `type` (unless it is
    /// int-or-string or preserves unknown fields), or which uses `$ref`, `definitions`, and the
    /// like. Types are made as well as possible; the value becomes JSON.
    NotStructural = "KG0301",
    /// A keyword of a schema has a value of the wrong type.
    ///
    /// For example a string where a list is expected. The API server would refuse it.
    InvalidSchema = "KG0302",
    /// `required` names a property that is not declared.
    ///
    /// The API server prunes undeclared properties, so no object can ever be valid unless the
    /// property is filled in by something else. The type leaves it out.
    UndeclaredRequired = "KG0303",
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
    /// The manifest lacks something that is needed.
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
    /// A value in the manifest is not possible there.
    ///
    /// The message says which values are.
    ManifestValue = "KG0504",
    /// The manifest has a setting of Kopf that has no meaning here.
    ///
    /// The message says what takes its place, if anything does. `docs/settings.md` has the table of
    /// all settings.
    KopfOnlySetting = "KG0506",
    /// `on` names occasions that do not go together.
    ///
    /// `create`, `update`, `delete` and `resume` can be combined, and the context tells which one
    /// it was. `field` and `event` stand alone.
    HandlerTriggers = "KG0601",
    /// A handler has an option that does not fit it.
    ///
    /// `optional` is for delete handlers, `deleted` for resume handlers; `value`, `old` and `new`
    /// need a `field`, and `value` excludes the other two. A timer needs `interval` or `idle`, and
    /// `sharp` needs `interval`; `initial_delay` is for timers and daemons, `cancellation_…` for
    /// daemons.
    HandlerOption = "KG0602",
    /// The name of a function is not a Rust name.
    ///
    /// `fn`, `when` and `predicate` become methods. The id that objects carry can be any other
    /// text: give it with `id`.
    HandlerName = "KG0603",
    /// Two handlers cannot be told apart.
    ///
    /// Objects carry the progress of a handler under its id (with `/field.path` for handlers with a
    /// field), so ids are unique within a kind; and one function has one signature. Give `id` or
    /// another `fn`.
    DuplicateHandler = "KG0604",
    /// A field path does not exist in the schema of the kind.
    ///
    /// The API server removes fields that the schema does not have, so the handler would never be
    /// called. Below `x-kubernetes-preserve-unknown-fields` any path is accepted.
    UnknownField = "KG0605",
    /// The manifest names a kind that does not exist.
    ///
    /// `crd` is a file that defines the kind, and `kind` chooses one if it defines several;
    /// `builtin` is the `apiVersion` and kind of something that every cluster has, such as
    /// `v1/Pod` or `batch/v1/Job`.
    UnknownKind = "KG0606",
    /// The name of the operator cannot be used.
    ///
    /// It names the crate and everything that is deployed: lower-case letters, digits and dashes,
    /// starting with a letter, at most 63 of them.
    OperatorName = "KG0607",
    /// The manifest names the same kind twice.
    ///
    /// All handlers of a kind belong into one entry.
    DuplicateKind = "KG0608",
    /// A filter can never be met.
    ///
    /// The schema never lets the value into the field: it has another type, is none of the `enum`,
    /// or is outside of `minimum`, `maxLength`, `pattern` and the like; or no object can have such a
    /// label or annotation. The handler would never be called. `old` gets a warning only, because
    /// an object may still have a value from a time when the schema allowed it; mutating webhooks
    /// see objects before their limits are checked. To look for what the schema should not let
    /// pass, write `{predicate: name}`.
    FilterValue = "KG0609",
    /// Objects wait for a handler when they are deleted.
    ///
    /// A delete handler puts a finalizer on every object that it could be called for, and so do
    /// timers and daemons, which have to stop first. While the operator does not run, such objects
    /// cannot be deleted, nor can their namespaces. `optional: true` on a delete handler lets them
    /// go; filters keep the finalizer away from objects that a timer or daemon is not for. Before
    /// the operator goes for good, let the filters of these handlers match nothing and run it once
    /// more: it takes its finalizer off the objects.
    HoldsDeletion = "KG0610",
    /// Results of handlers would be lost.
    ///
    /// A handler that delivers a result, with `cx.set_result`, has it written to
    /// `status.<its id>`. The schema of the kind has no room for that, so the API server drops it
    /// without a word. Add the field to the schema, or `x-kubernetes-preserve-unknown-fields: true`
    /// to `status`. Handlers that deliver nothing, or write fields of the status that the schema
    /// has, need neither.
    PrunedResults = "KG0611",
    /// Two versions of a kind are handled at once.
    ///
    /// They are two views of the same objects, so every object is handled twice, and both
    /// kinds of handlers keep their progress on it.
    TwoVersions = "KG0612",
    /// A webhook does not say what it is.
    ///
    /// An entry of `admission` names its function with `validate`, which says yes or no, or with
    /// `mutate`, which may also change the object; not with both, because the API server asks the
    /// two kinds at different times.
    WebhookRole = "KG0620",
    /// Requests to the API server are refused while the operator does not answer.
    ///
    /// A webhook on a kind that the cluster itself needs can make the cluster unusable: if Pods
    /// cannot be created, neither can those of the operator that would answer. Namespaces of the
    /// system and the operator's own are always left out; `ignore_failures: true` lets requests
    /// pass everywhere when nobody answers.
    BlockingWebhook = "KG0621",
    /// What is applied from `deploy/` is not what was generated there.
    ///
    /// `deploy/kustomization.yaml` is yours, and says what `kubectl apply -k deploy` applies. A new
    /// handler can bring a new file, such as `deploy/webhooks.yaml` with the Service that leads the
    /// API server to the operator: add it to the `resources` there. If the last such handler goes,
    /// so does the file, and the list must not name it any more.
    DeploymentList = "KG0622",
    /// A memo is declared where none can last.
    ///
    /// What is remembered of an object is kept as long as the operator watches it. A kind with
    /// webhooks alone is not watched, so each of their calls begins with an empty memo.
    UselessMemo = "KG0625",
    /// States are to be kept that nobody compares.
    ///
    /// `track: always` keeps the last handled state on every object of a kind, so that one that
    /// begins to match the filters of a handler is compared with what it was before. That costs
    /// a write for each change of each object, and is for the handlers of changes only.
    UselessTracking = "KG0626",
    /// What is said about other operators or replicas cannot work.
    ///
    /// A leader has to stop before another may begin: `retry_period` < `renew_deadline` <
    /// `lease_duration`. Lifetimes and leases are whole seconds, because other programs read them
    /// as such. Peerings and Leases are objects, and are named like objects.
    PeersOption = "KG0630",
    /// The types of an index cannot be used.
    ///
    /// `keys` and `values` are Rust types that own what they hold: `String` and not `&str`. Keys can
    /// be compared for equality and hashed, so there are no floating-point numbers in them. Types
    /// of the standard library, and those of the operator's kinds, are known by their names; a type
    /// of your own is written with its path, such as `crate::handlers::PodInfo`. All kinds that are
    /// found in one index have the same types there.
    IndexType = "KG0640",
    /// A selection cannot be meant like this.
    ///
    /// `select` says in one way which kinds are meant: by `kind`, `plural`, `singular`,
    /// `short_name`, `any_name` or `category`; `group` and `version` can be added to each of them.
    /// Only a `group` is everything in it, and `select: everything` is all that the cluster has.
    /// Names are case-sensitive, and none is empty but that of the core group.
    Selection = "KG0650",
    /// Handlers of a wide selection write to objects of others.
    ///
    /// Handlers of changes keep their progress in annotations of each object, and delete handlers,
    /// timers and daemons hold it with a finalizer. On a category, a group or everything, that is
    /// every object of every such kind, in namespaces of the system as well. `labels` or `when`
    /// restrict them to objects that you mean; `on: event` writes nothing.
    WideWrites = "KG0651",
    /// A selection has no webhooks.
    ///
    /// The API server has to be told by name about which kinds it asks, before they are changed for
    /// the first time; and a webhook that it asks about everything can stop the whole cluster. Name
    /// the kinds with `crd` or `builtin`.
    SelectedWebhook = "KG0652",
    /// The permissions of the operator are as wide as its selection.
    ///
    /// Which kinds a category, a kind or a short name means is only known in the cluster, and
    /// permissions are given by plural. So `deploy/rbac.yaml` has to allow all kinds of the group,
    /// or of all groups. A `group` makes that less, and `plural` with `group` makes it exact.
    WidePermissions = "KG0653",
    /// Two handlers of the same id may be about the same objects.
    ///
    /// A selection can mean a kind that is named elsewhere in the manifest, or that another
    /// selection means, too. One stream then serves both, and an object carries the progress of
    /// each handler under its id: give one of them another `id` or `fn`.
    SelectionOverlap = "KG0654",
    /// A file of yours is not valid Rust.
    ///
    /// Stubs are added at places found by parsing, so a file that does not parse cannot get any.
    /// Nothing was written. Mend the file and run the command again.
    UserFileSyntax = "KG0701",
    /// Nothing implements the handlers of a kind.
    ///
    /// The methods of a kind belong into an `impl <Kind>Handlers for ...` block. It may be in any
    /// file below `src/`, but it must not come out of a macro, or stubs have no place to go.
    NoHandlersImpl = "KG0702",
    /// A method of yours is not a handler any more.
    ///
    /// The manifest no longer names it. Code is never deleted for you: the method stays until you
    /// remove it, and the compiler refuses it as not being a member of the trait.
    LeftOverHandler = "KG0703",
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
