"""Strict offline simulators of the providers. Their rules are written independently of the codecs they judge."""
