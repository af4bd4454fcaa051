//! The operator `{{ name }}`.

#[rustfmt::skip]
mod generated;
mod handlers;

fn main() -> std::process::ExitCode {
    {% if builds_state -%}
    generated::operator::<handlers::Operator>().main()
    {%- else -%}
    generated::operator(handlers::Operator::default()).main()
    {%- endif %}
}
