"""Dimension expressions, propositions about them, and the prover."""
