//! `kopf-gen schema`: the JSON Schema of `kopf.yaml`, printed, or written where editors look for it.

use std::path::{Path, PathBuf};

use clap::Args;

use super::console::Console;
use super::crate_folder::find_root;
use super::exit_status::CommandStatus;
use super::readonly_commands::print;
use crate::load::manifest;
use crate::write::{self, EDITOR_SCHEMA};

/// Print the JSON Schema of kopf.yaml, or write it for editors
#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// Write it to .kopf-gen/schema.json, to which the first line of kopf.yaml points editors
    #[arg(long)]
    write: bool,
    /// The manifest; by default kopf.yaml here or in the nearest folder above
    #[arg(short, long, value_name = "FILE", requires = "write")]
    manifest: Option<PathBuf>,
}

pub(super) fn run(args: &SchemaArgs, console: &mut Console) -> CommandStatus {
    if !args.write {
        return print(&text(), console);
    }
    let root = match find_root(args.manifest.as_deref()) {
        Ok(root) => root,
        Err(message) => return console.fail(&message),
    };
    match write::write_schema(&root, &text()) {
        Ok(()) => {
            console.print_file_action("written", EDITOR_SCHEMA);
            CommandStatus::Ok
        }
        Err(error) => console.fail_with(&error),
    }
}

/// Keeps the schema up to date in a crate where the user has written it.
pub(super) fn refresh(root: &Path) -> Result<(), write::Error> {
    if root.join(EDITOR_SCHEMA).exists() {
        write::write_schema(root, &text())?;
    }
    Ok(())
}

fn text() -> String {
    let schema = serde_json::to_string_pretty(&manifest::schema()).expect("a schema is JSON");
    schema + "\n"
}
