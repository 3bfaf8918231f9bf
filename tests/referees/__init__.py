"""Plain second routes to what the library computes, shared by tests."""
