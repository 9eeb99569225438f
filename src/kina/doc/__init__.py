"""Reference pages: of operations and forms, from their declarations, and of modules, from their `///` comments."""
