//! kopf-gen accepts and rejects definitions as a real API server does, and with its reasons.

#[path = "definitions/drawn.rs"]
mod drawn;
#[path = "definitions/judges.rs"]
mod judges;
#[path = "definitions/names.rs"]
mod names;
#[path = "definitions/schemas.rs"]
mod schemas;
