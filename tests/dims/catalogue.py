"""All obligations of real models that the prover is tested and timed on, true and false."""

from __future__ import annotations

import composed_obligations as composed
import further_obligations as further
import more_obligations as more
import obligations as first

PROVED = [*first.PROVED, *more.PROVED, *further.PROVED, *composed.PROVED]
REFUTED = [*first.REFUTED, *more.REFUTED, *further.REFUTED, *composed.REFUTED]
