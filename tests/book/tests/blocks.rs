//! Every block of Rust in the pages compiles; tests in them run.
#![allow(
    warnings,
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    reason = "pages show what a reader needs, and nothing else"
)]

#[path = "blocks/world.rs"]
mod world;

include!(concat!(env!("OUT_DIR"), "/blocks.rs"));

#[test]
fn the_blocks_of_all_pages_are_compiled() {
    assert!(COUNT > 45, "only {COUNT} blocks");
}
