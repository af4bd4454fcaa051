//! The operator `reconciled-tenant-operator`.

#[rustfmt::skip]
mod generated;
mod handlers;

fn main() -> std::process::ExitCode {
    generated::operator(handlers::Operator::default()).main()
}
