//! Corrects definitions that the API server rejects: of `v1beta1`, or not named after plural and group.

use clap::Args;
use serde_json::Value;

use crate::format::yaml;
use crate::load::crd::{Crd, NameFix};
use crate::yaml::YamlMap;

/// The option to correct definitions that the API server rejects.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct FixArgs {
    /// Write definitions of `v1beta1`, or not named `<plural>.<group>`, as the API server accepts them
    #[arg(long)]
    fix_names: bool,
}

impl FixArgs {
    pub(super) const fn fix(self) -> NameFix {
        if self.fix_names {
            NameFix::Correct
        } else {
            NameFix::Refuse
        }
    }
}

/// The definitions of a file as YAML, if one of them was corrected.
pub(super) fn corrected_text(name: &str, kinds: &[Crd]) -> Option<String> {
    if !kinds.iter().any(|crd| crd.is_corrected) {
        return None;
    }
    let base = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let origin = format!("Corrected by kopf-gen, from {base}.");
    let first: &[&str] = &[&origin];
    let values = kinds
        .iter()
        .filter_map(|crd| serde_json::from_str(&crd.json).ok());
    let maps = values.enumerate().map(|(index, value): (usize, Value)| {
        let comment = if index == 0 { first } else { &[] };
        (comment, YamlMap::from(&value))
    });
    Some(yaml::documents(&maps.collect()))
}
