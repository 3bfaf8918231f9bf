"""`python -m qdtheory` is the command."""

from qdtheory.commands.process import main

main()
