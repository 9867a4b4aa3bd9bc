"""What the paper says: its scenarios, its printed numbers, its claims."""
