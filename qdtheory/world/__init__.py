"""Texts, distributions over them and the models that give them: no metric yet."""
