//! The operator `load-test-operator`.

#[rustfmt::skip]
mod generated;
mod handlers;

// It takes less time than the allocator of the C library, and returns memory after bursts.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    generated::operator(handlers::Operator::default()).main()
}
