"""Follow a run live in other tools."""
