"""Kina: a typed tensor language with a compiler."""
