"""Train, evaluate, and apply taggers."""
