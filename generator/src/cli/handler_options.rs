//! The options that the commands `kopf-gen add` share: filters, fields, parameters and retries.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::manifest_entry::{
    EntryKey, FlowText, list_of, metadata_filters, optional_scalar, optional_text,
};

/// The options of every entry of a kind.
#[derive(Debug, Args)]
pub(super) struct FilterArgs {
    /// Only objects with this label: `name`, `name=value`, `!name` for objects without it, or
    /// `name={any: [a, b]}` with any filter of kopf.yaml
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// Only objects with this annotation, as for labels
    #[arg(long = "annotation", value_name = "ANNOTATION")]
    annotations: Vec<String>,
    /// The name of a function that decides about each object, or `{any: [one, two]}`
    #[arg(long, value_name = "NAME")]
    when: Option<FlowText>,
    /// A value for the function, as YAML
    #[arg(long, value_name = "VALUE")]
    param: Option<FlowText>,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

/// A field, and the value that it must have.
#[derive(Debug, Args)]
pub(super) struct FieldArgs {
    /// Only objects that have this field
    #[arg(long, value_name = "PATH")]
    field: Option<String>,
    /// Only if the field has this value, `present`, `absent`, or another filter of kopf.yaml
    #[arg(long, value_name = "VALUE", requires = "field")]
    value: Option<FlowText>,
}

/// The fields of a handler, and the values before and after a change.
#[derive(Debug, Args)]
pub(super) struct ChangedFieldArgs {
    /// The field that the handler watches; it can be given several times
    #[arg(long = "field", value_name = "PATH")]
    fields: Vec<String>,
    /// Only if the field has this value, `present`, `absent`, or another filter of kopf.yaml
    #[arg(long, value_name = "VALUE", requires = "fields")]
    value: Option<FlowText>,
    /// Only for changes from this value of the field
    #[arg(long, value_name = "VALUE", requires = "fields")]
    old: Option<FlowText>,
    /// Only for changes to this value of the field
    #[arg(long, value_name = "VALUE", requires = "fields")]
    new: Option<FlowText>,
}

/// The types of a handler's parameter and result.
#[derive(Debug, Args)]
pub(super) struct TypeArgs {
    /// The Rust type of the parameter
    #[arg(long, value_name = "TYPE", requires = "param")]
    param_type: Option<String>,
    /// The Rust type of the result
    #[arg(long, value_name = "TYPE")]
    result: Option<String>,
}

/// The treatment of errors.
#[derive(Debug, Args)]
pub(super) struct RetryArgs {
    /// The meaning of an error that is neither temporary nor permanent by itself
    #[arg(long)]
    errors: Option<ErrorsArg>,
    /// The number of attempts; by default there is no limit, except for event handlers
    #[arg(long, value_name = "NUMBER")]
    retries: Option<u32>,
    /// The pause before the next attempt, such as 30s; by default a minute
    #[arg(long, value_name = "DURATION")]
    backoff: Option<String>,
    /// How long to keep trying, such as 1h; by default there is no limit
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ErrorsArg {
    Ignored,
    Temporary,
    Permanent,
}

// === impl FilterArgs ===

impl FilterArgs {
    pub(super) fn manifest(&self) -> Option<&Path> {
        self.manifest.as_deref()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = EntryKey> {
        [
            ("labels", metadata_filters(&self.labels)),
            ("annotations", metadata_filters(&self.annotations)),
            ("when", optional_text(self.when.as_ref())),
            ("param", optional_text(self.param.as_ref())),
        ]
        .into_iter()
    }
}

// === impl FieldArgs ===

impl FieldArgs {
    pub(super) fn keys(&self) -> impl Iterator<Item = EntryKey> {
        [
            ("field", optional_scalar(self.field.as_ref())),
            ("value", optional_text(self.value.as_ref())),
        ]
        .into_iter()
    }
}

// === impl ChangedFieldArgs ===

impl ChangedFieldArgs {
    pub(super) fn keys(&self) -> impl Iterator<Item = EntryKey> {
        [
            ("field", list_of(&self.fields)),
            ("value", optional_text(self.value.as_ref())),
            ("old", optional_text(self.old.as_ref())),
            ("new", optional_text(self.new.as_ref())),
        ]
        .into_iter()
    }
}

// === impl TypeArgs ===

impl TypeArgs {
    pub(super) fn keys(&self) -> impl Iterator<Item = EntryKey> {
        [
            ("param_type", optional_scalar(self.param_type.as_ref())),
            ("result", optional_scalar(self.result.as_ref())),
        ]
        .into_iter()
    }
}

// === impl RetryArgs ===

impl RetryArgs {
    pub(super) fn keys(&self) -> impl Iterator<Item = EntryKey> {
        let errors = self.errors.and_then(|mode| mode.to_possible_value());
        [
            ("errors", errors.map(|mode| mode.get_name().to_owned())),
            ("retries", self.retries.map(|retries| retries.to_string())),
            ("backoff", optional_scalar(self.backoff.as_ref())),
            ("timeout", optional_scalar(self.timeout.as_ref())),
        ]
        .into_iter()
    }
}
