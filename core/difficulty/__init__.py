"""Information of a name and of a context on an entity's type: PVI a mention, V-information a data set."""
