//! Prints the table of the structs of `k8s-openapi` that schemas embed.
//!
//! ```text
//! cargo run -p kopf-gen --example builtin_table -- ~/.cargo/registry/src/*/k8s-openapi-0.29.0 \
//!     > generator/src/model/k8s_types/table.txt
//! ```
//!
//! A struct is listed with the fields that it has in all versions of Kubernetes from 1.35 on.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use quote::ToTokens;

const VERSIONS: [&str; 3] = ["v1_35", "v1_36", "v1_37"];

const MODULES: [&str; 9] = [
    "api::apps::v1::",
    "api::autoscaling::v2::",
    "api::batch::v1::",
    "api::core::v1::",
    "api::networking::v1::",
    "api::policy::v1::",
    "api::rbac::v1::",
    "api::storage::v1::",
    "apimachinery::pkg::apis::meta::v1::",
];

#[derive(Clone, PartialEq)]
struct Field {
    json: String,
    ty: String,
    optional: bool,
}

struct Struct {
    default: bool,
    fields: Vec<Field>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::args()
        .nth(1)
        .ok_or("usage: builtin_table K8S_OPENAPI_FOLDER")?;
    let mut versions = Vec::new();
    for version in VERSIONS {
        let mut structs = BTreeMap::new();
        let folder = Path::new(&root).join("src").join(version);
        collect(&folder, &folder, &mut structs)?;
        versions.push(structs);
    }
    let (first, others) = versions.split_first().ok_or("no versions")?;
    for (path, found) in first {
        if MODULES.iter().any(|module| path.starts_with(module)) {
            print(path, found, others);
        }
    }
    Ok(())
}

fn print(path: &str, found: &Struct, others: &[BTreeMap<String, Struct>]) {
    let same: Vec<&Struct> = others
        .iter()
        .filter_map(|structs| structs.get(path))
        .collect();
    let common = |field: &&Field| same.iter().all(|other| other.fields.contains(field));
    let fields: Vec<&Field> = found.fields.iter().filter(common).collect();
    let names: Vec<&str> = fields.iter().map(|field| field.json.as_str()).collect();
    // A field that is always written in some version, but does not exist in others, cannot be served.
    let complete = std::iter::once(found).chain(same.iter().copied()).all(|s| {
        s.fields
            .iter()
            .all(|f| f.optional || names.contains(&f.json.as_str()))
    });
    let resource = ["apiVersion", "kind", "metadata"]
        .iter()
        .all(|name| names.contains(name));
    if same.len() < others.len() || !complete || resource {
        return;
    }
    let default = found.default && same.iter().all(|other| other.default);
    say(&format!("{path}{}", if default { " default" } else { "" }));
    for field in fields {
        say(&format!(
            "  {}{} {}",
            field.json,
            if field.optional { "?" } else { "" },
            field.ty
        ));
    }
}

fn collect(
    root: &Path,
    folder: &Path,
    structs: &mut BTreeMap<String, Struct>,
) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, structs)?;
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let module = folder
            .strip_prefix(root)?
            .display()
            .to_string()
            .replace('/', "::");
        if let Some((name, found)) = read(&text)? {
            structs.insert(format!("{module}::{name}"), found);
        }
    }
    Ok(())
}

/// The struct of a file, if it has named fields.
fn read(text: &str) -> Result<Option<(String, Struct)>, Box<dyn Error>> {
    let file = syn::parse_file(text)?;
    let found = file.items.iter().find_map(|item| match item {
        syn::Item::Struct(item)
            if matches!(item.vis, syn::Visibility::Public(_))
                && matches!(item.fields, syn::Fields::Named(_))
                && item.generics.params.is_empty() =>
        {
            Some(item)
        }
        _ => None,
    });
    let Some(item) = found else { return Ok(None) };
    let mut fields = Vec::new();
    for field in &item.fields {
        let name = field
            .ident
            .as_ref()
            .ok_or("a field without a name")?
            .to_string();
        let name = name.trim_start_matches("r#");
        let Some(json) = json_name(text, name) else {
            return Ok(None);
        };
        let (ty, optional) = short(&field.ty.to_token_stream().to_string().replace(' ', ""));
        fields.push(Field { json, ty, optional });
    }
    let derives = item.attrs.iter().map(|a| a.to_token_stream().to_string());
    let default = derives.into_iter().any(|derive| derive.contains("Default"));
    let known = !fields.is_empty();
    Ok(known.then(|| (item.ident.to_string(), Struct { default, fields })))
}

/// The name in JSON, which stands in the deserializer.
fn json_name(text: &str, name: &str) -> Option<String> {
    let end = text.find(&format!("\" => Field::Key_{name},"))?;
    let start = text[..end].rfind('"')? + 1;
    Some(text[start..end].to_owned())
}

fn short(ty: &str) -> (String, bool) {
    let inner = |prefix: &str| {
        ty.strip_prefix(prefix)
            .and_then(|rest| rest.strip_suffix('>'))
    };
    if let Some(inner) = inner("Option<") {
        return (short(inner).0, true);
    }
    if let Some(inner) = inner("std::vec::Vec<") {
        return (format!("[{}]", short(inner).0), false);
    }
    if let Some(inner) = inner("std::collections::BTreeMap<std::string::String,") {
        return (format!("{{{}}}", short(inner).0), false);
    }
    if let Some(inner) = inner("std::boxed::Box<") {
        return short(inner);
    }
    let name = match ty {
        "std::string::String" => "string",
        "crate::ByteString" => "bytes",
        "crate::serde_json::Value" => "json",
        "crate::apimachinery::pkg::apis::meta::v1::Time" => "time",
        "crate::apimachinery::pkg::apis::meta::v1::MicroTime" => "microtime",
        "crate::apimachinery::pkg::api::resource::Quantity" => "quantity",
        "crate::apimachinery::pkg::util::intstr::IntOrString" => "intorstring",
        "crate::apimachinery::pkg::runtime::RawExtension" => "raw",
        other => other.strip_prefix("crate::").unwrap_or(other),
    };
    (name.to_owned(), false)
}

#[expect(clippy::print_stdout, reason = "this is a command")]
fn say(line: &str) {
    println!("{line}");
}
