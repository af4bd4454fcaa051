//! The command `roots`: the compile cost of root types with traits written out, and derived by kube.

use super::{Error, print};
use crate::command_cost::CommandCost;
use crate::kopium;
use crate::scratch_crate::{
    CargoCommand, GeneratedModule, ModuleCoupling, ModuleFile, ScratchCrate,
};

/// Enough kinds for a cost well above the noise.
const KINDS: usize = 400;

/// The code that both variants share.
const PARTS: &str = r"use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct KindStatus {
    pub phase: Option<String>,
}
";

const DERIVED: &str = r#"
#[derive(kube::CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v1", kind = "Kind", plural = "kinds")]
#[kube(namespaced, schema = "disabled", status = "KindStatus", derive = "PartialEq")]
pub struct KindSpec {
    pub size: Option<i64>,
}
"#;

const WRITTEN: &str = r#"
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serializer;
use serde::ser::SerializeMap;

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct KindSpec {
    pub size: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Kind {
    pub metadata: ObjectMeta,
    pub spec: KindSpec,
    pub status: Option<KindStatus>,
}

impl k8s_openapi::Resource for Kind {
    const API_VERSION: &'static str = "example.com/v1";
    const GROUP: &'static str = "example.com";
    const KIND: &'static str = "Kind";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "kinds";
    type Scope = k8s_openapi::NamespaceResourceScope;
}

impl k8s_openapi::Metadata for Kind {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("apiVersion", "example.com/v1")?;
        map.serialize_entry("kind", "Kind")?;
        map.serialize_entry("metadata", &self.metadata)?;
        map.serialize_entry("spec", &self.spec)?;
        if let Some(status) = &self.status {
            map.serialize_entry("status", status)?;
        }
        map.end()
    }
}
"#;

pub(super) fn roots() -> Result<(), Error> {
    let scratch = ScratchCrate::create("roots", &kopium::DEPENDENCIES)?;
    scratch.compile_dependencies(CargoCommand::Check)?;
    let neither = cost(&scratch, "")?;
    let written = cost(&scratch, WRITTEN)?;
    let derived = cost(&scratch, DERIVED)?;
    print(format_args!(
        "{KINDS} kinds, CPU s of cargo check: {neither:.1} without roots, {written:.1} with roots written out, {derived:.1} derived by kube",
    ))
}

fn cost(scratch: &ScratchCrate, root: &str) -> Result<f64, Error> {
    let modules: Vec<GeneratedModule> = (0..KINDS)
        .map(|number| {
            let name = format!("kind{number}");
            let path = format!("{name}.rs");
            let text = format!("{PARTS}{root}");
            let files = vec![ModuleFile { path, text }];
            GeneratedModule { name, files }
        })
        .collect();
    let report = scratch.check_modules(CargoCommand::Check, &modules, ModuleCoupling::Coupled)?;
    let CommandCost { cpu, .. } = report.cost;
    match report.errors.len() {
        0 => Ok(cpu.as_secs_f64()),
        count => Err(Error::CompilerErrors(count)),
    }
}
