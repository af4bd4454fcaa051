//! Tests that operators may do no more than they need, and reveal nothing.

#[path = "security/example.rs"]
mod example;
#[path = "security/privileges.rs"]
mod privileges;
#[path = "security/purpose.rs"]
mod purpose;
#[path = "security/secrets.rs"]
mod secrets;
