"""Code of single lectures: it may use all of qdtheory, which uses none of it."""
