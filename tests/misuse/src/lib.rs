//! Uses of the handler API that must not compile, for the test of this package.
//!
//! Without `--cfg misuse`, the package is empty, so that the workspace compiles.

#[cfg(misuse)]
mod cases;
