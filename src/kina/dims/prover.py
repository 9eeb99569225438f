"""Settles obligations about dimensions: the road of normal form, facts, SMT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kina.dims.proposition import Proposition


class Status(StrEnum):
    NORMAL_FORM = "normal-form"
    FACTS = "facts"
    SMT = "smt"
    REFUTED = "refuted"
    UNDECIDED = "undecided"

    @property
    def proved(self) -> bool:
        return self in (Status.NORMAL_FORM, Status.FACTS, Status.SMT)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a goal was settled. `counterexample` gives sizes when refuted; `used` the facts that a proof took."""

    status: Status
    counterexample: Mapping[str, int] | None = None
    used: tuple[Proposition, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """Hypotheses in scope. Every variable is a natural number without being told."""

    hypotheses: tuple[Proposition, ...] = ()

    def assume(self, *facts: Proposition) -> Facts:
        return Facts(self.hypotheses + facts)


def settle(goal: Proposition, facts: Facts) -> Verdict:
    """Proves or refutes `goal` for all sizes that satisfy `facts`."""
    raise NotImplementedError
