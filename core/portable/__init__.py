"""A project as one file, and back again; a home of an older version as a project."""
