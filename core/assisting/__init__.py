"""Select sentences of an assisting labelled corpus, and test whether they help."""
