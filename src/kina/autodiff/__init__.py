"""Differentiation of core: functions from statements to statements.

`forward` computes tangents beside values; `unzip` splits the result into what does not depend on the tangents and what
is linear in them; `backward` transposes the linear half. Forward mode is the first, reverse mode all three.
"""

from kina.autodiff.builder import Builder
from kina.autodiff.errors import Unsupported
from kina.autodiff.functions import jvp, pull, push, vjp

__all__ = ["Builder", "Unsupported", "jvp", "pull", "push", "vjp"]
