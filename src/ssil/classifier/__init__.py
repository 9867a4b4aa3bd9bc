"""The practitioner's side."""
