"""Codes, messages and their rendering."""

from kina.diagnostics.diagnostic import Diagnostic, Edit, Help, KinaError, Label, Severity

__all__ = ["Diagnostic", "Edit", "Help", "KinaError", "Label", "Severity"]
