"""Where Python calls Kina: arrays, the call boundary, modules as Python objects."""
