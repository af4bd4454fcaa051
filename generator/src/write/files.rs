//! Reading of files that may not exist, and the folder that kopf-gen keeps in a crate.

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
