"""Surface syntax -> typed core: inference, sugar, proofs."""

from kina.elaborate.elaborator import elaborate
from kina.elaborate.result import Elaboration, Obligation, Signature

__all__ = ["Elaboration", "Obligation", "Signature", "elaborate"]
