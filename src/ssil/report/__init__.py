"""Records as tables and as a page to look at; what differs between two runs."""
