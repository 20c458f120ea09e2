"""Select sentences of an assisting labelled corpus, and test if they help."""
