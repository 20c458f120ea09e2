"""Continue masked language modelling of an encoder on selected text."""
