"""Compare variants on shared stages, with a verdict per variant; a study compares them on several tasks."""
