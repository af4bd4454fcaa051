//! The operator `mailbox-operator`.

#[rustfmt::skip]
mod generated;
mod handlers;
mod mail_server;

fn main() -> std::process::ExitCode {
    generated::operator(handlers::Operator::default()).main()
}
