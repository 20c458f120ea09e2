"""Look up names in test sets, from lists that give each name a type, and score the matches."""
