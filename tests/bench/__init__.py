"""Measures ksi_hooks beside its predecessor's way and beside nothing at all; asserts nothing."""
