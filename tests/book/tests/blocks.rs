//! Every block of Rust in the pages compiles; tests in them run.
#![allow(
    warnings,
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    reason = "pages show what a reader needs, and nothing else"
)]

#[path = "world.rs"]
mod world;

include!(concat!(env!("OUT_DIR"), "/blocks.rs"));

#[test]
fn the_blocks_of_all_pages_are_compiled() {
    for reason in LEFT_OUT {
        println!("not compiled: {reason}");
    }
    assert!(COUNT > 30, "only {COUNT} blocks");
    assert!(LEFT_OUT.len() < 4, "{LEFT_OUT:?}");
}
