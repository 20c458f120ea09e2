"""What finished runs leave: one file an artifact, `write` beside `read`, and the views that look at several."""
