//! The operator `load-test-operator`.

#[rustfmt::skip]
mod generated;
mod handlers;

fn main() -> std::process::ExitCode {
    generated::operator(handlers::Operator::default()).main()
}
