//! Reading of files that may not exist, places outside of the crate, and the folder that kopf-gen keeps in a crate.

use std::io;
use std::path::Path;

use super::error::Error;

/// The folder that belongs to kopf-gen inside an operator crate.
pub const TOOL_FOLDER: &str = ".kopf-gen";

pub(super) fn read_if_exists(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(source) => Err(Error::Read {
            path: path.to_path_buf(),
            source,
        }),
    }
}

/// Refuses a place to which links lead out of the crate: a crate that comes from elsewhere must not
/// make a run write anywhere else.
pub(super) fn check_inside(root: &Path, place: &Path) -> Result<(), Error> {
    let root = if root.as_os_str().is_empty() {
        Path::new(".")
    } else {
        root
    };
    let Ok(root) = root.canonicalize() else {
        // There is no crate yet, and no link in it.
        return Ok(());
    };
    let existing = place.ancestors().find_map(|it| it.canonicalize().ok());
    match existing {
        Some(existing) if !existing.starts_with(root) => Err(Error::Outside(place.to_path_buf())),
        _ => Ok(()),
    }
}
