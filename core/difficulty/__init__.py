"""What a name and what a context tell of an entity's type: PVI a mention, V-information a data set."""
