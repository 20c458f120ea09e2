"""Continue the pre-training of an encoder on selected text, by masked language modelling."""
