"""The functions that exercises.toml names, a module a lecture; `common` serves all."""
