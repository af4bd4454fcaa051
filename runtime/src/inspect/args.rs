//! The options of `inspect` and `unstick`.

use std::convert::Infallible;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use kopf_core::selection::Selector;

/// The options of `inspect`.
#[derive(Clone, Debug, Args)]
pub struct InspectArgs {
    /// A kind, or one object; by default all kinds of the operator
    ///
    /// KIND is a kind, a plural, a singular or a short name, with the group if several kinds have
    /// that name: `widgets.example.com`. One object is shown in detail.
    #[arg(value_name = "KIND[/NAME]")]
    pub(super) target: Option<InspectTarget>,

    /// In this namespace only; may be given several times
    #[arg(short, long = "namespace", value_name = "NAME", value_delimiter = ',')]
    pub(super) namespaces: Vec<String>,

    /// Print objects again when their handling changes, until interrupted
    #[arg(short, long)]
    pub(super) watch: bool,

    /// The format of the output
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: InspectFormat,
}

/// The options of `unstick`.
#[derive(Clone, Debug, Args)]
pub struct UnstickArgs {
    /// A kind, or one object
    #[arg(value_name = "KIND[/NAME]")]
    pub(super) target: InspectTarget,

    /// In this namespace only; may be given several times
    #[arg(short, long = "namespace", value_name = "NAME", value_delimiter = ',')]
    pub(super) namespaces: Vec<String>,

    /// Only objects that are being deleted
    #[arg(long)]
    pub(super) deleting: bool,

    /// Do it; otherwise the command asks on a terminal, and only shows what it would do elsewhere
    #[arg(short, long)]
    pub(super) yes: bool,
}

/// The format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum InspectFormat {
    /// One line for each object
    #[default]
    Table,
    /// Longer lines, with changes and finalizers
    Wide,
    /// JSON; with --watch one object in each line
    Json,
    /// YAML
    Yaml,
}

/// A kind, or one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InspectTarget {
    /// The name of the kind.
    pub(super) kind: String,
    pub(super) group: Option<String>,
    /// The name of the object.
    pub(super) name: Option<String>,
}

// === impl InspectTarget ===

impl FromStr for InspectTarget {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (kind, name) = match text.split_once('/') {
            Some((kind, name)) => (kind, Some(name.to_owned())),
            None => (text, None),
        };
        let (kind, group) = match kind.split_once('.') {
            Some((kind, group)) => (kind, Some(group.to_owned())),
            None => (kind, None),
        };
        Ok(Self {
            kind: kind.to_owned(),
            group,
            name: name.filter(|name| !name.is_empty()),
        })
    }
}

impl InspectTarget {
    /// The selectors to try, one after the other.
    pub(super) fn selectors(&self) -> impl Iterator<Item = Selector> {
        let names = [self.kind.clone(), self.kind.to_lowercase()];
        names.into_iter().map(|name| {
            let selector = Selector::any_name(name);
            match &self.group {
                Some(group) => selector.in_group(group),
                None => selector,
            }
        })
    }

    /// The kind as it was given.
    pub(super) fn kind_text(&self) -> String {
        match &self.group {
            Some(group) => format!("{}.{group}", self.kind),
            None => self.kind.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_kind_or_one_object_of_it() {
        let read = |text: &str| {
            let target = text.parse::<InspectTarget>().expect("it never fails");
            (target.kind, target.group, target.name)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("widgets"), ("widgets".to_owned(), None, None));
        assert_eq!(
            read("widgets.example.com/a"),
            ("widgets".to_owned(), some("example.com"), some("a"))
        );
        assert_eq!(read("Widget/"), ("Widget".to_owned(), None, None));
    }
}
