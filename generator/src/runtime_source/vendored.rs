//! The copy of the runtime inside an operator crate, made from the sources in this program.

use crate::crate_path::CratePath;

/// The folder of the copy inside the crate.
pub const VENDOR_FOLDER: &str = "vendor/kopf-gen";

/// The paths and texts of the runtime; the build script makes them.
static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/runtime_sources.rs"));

/// The note on top of the copy.
const NOTE: &str = "# A copy of the runtime

`kopf-gen generate` replaces it by the runtime of the kopf-gen that runs, as long as no file in it
is changed. Once one is, the copy is yours, and stays as it is. `kopf-gen runtime` chooses another
source for the runtime.
";

/// The files of the copy, and their texts.
pub fn vendored_files() -> impl Iterator<Item = (CratePath, &'static str)> {
    const README: (&str, &str) = ("README.md", NOTE);
    [&README].into_iter().chain(SOURCES).map(|(path, text)| {
        let path = CratePath::new(format!("{VENDOR_FOLDER}/{path}"))
            .expect("the build script lists paths below a folder");
        (path, *text)
    })
}

/// Whether a file of the crate belongs to the copy.
#[must_use]
pub fn is_of_copy(path: &CratePath) -> bool {
    let below = path.as_str().strip_prefix(VENDOR_FOLDER);
    below.is_some_and(|rest| rest.starts_with('/'))
}
