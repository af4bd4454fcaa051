//! The operator `ephemeral-volume-operator`.

#[rustfmt::skip]
mod generated;
mod handlers;
mod life;

fn main() -> std::process::ExitCode {
    generated::operator(handlers::Operator::default()).main()
}
