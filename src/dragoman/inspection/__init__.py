"""What a body or a recorded stream is, in words: for the command line and for the page."""
