"""What kinds of run are made of: pieces that several share, or that one is too long to hold."""
