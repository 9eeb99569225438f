"""Language models in Kina, and what runs them: weights, tokens, caches."""
