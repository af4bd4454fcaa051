//! The Rust of the pages in `docs/` and of the README, compiled by the test of this package.
//!
//! A block is compiled as it stands, in a module of its own, with the names of `tests/blocks/world.rs`.
//! Comments directly above a block say what it needs beyond them:
//!
//! | comment | the block |
//! |---|---|
//! | `<!-- in: DaemonContext<Pod> -->` | has statements, in a handler with this context |
//! | `<!-- let: name = value -->` | has statements that use this variable |
//! | `<!-- returns: ExitCode -->` | ends with an expression of this type |
//! | `<!-- of: OnlyPool -->` | has methods of this type |
//! | `<!-- compiled only: reason -->` | has tests that are not run here |
//! | `<!-- with: sites -->` | uses the operator of the example about children |
