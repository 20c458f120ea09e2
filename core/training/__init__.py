"""Training: masked language modelling and taggers, on transformers' Trainer."""
