"""Class-incremental learning for image classifiers, after SS-IL (ICCV 2021)."""
