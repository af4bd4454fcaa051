impl Default for {{ name }} {
    fn default() -> Self {
        {{ value }}
    }
}
