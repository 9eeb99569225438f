"""The page docs/std.md, made from the modules of the standard library."""

from __future__ import annotations

from collections.abc import Iterator

from kina import std
from kina.syntax import ast
from kina.syntax.parser import parse

HEAD = """\
# The standard library

Modules in Kina, in `src/kina/std/`; `make golden` writes this page anew from them.

```kina
import std.nn (rms_norm, swiglu)

let layer [B, S, D, H] (x : F32[B, S, D]) (norm : F32[D]) (up : F32[D, H]) (down : F32[H, D]) : F32[B, S, D] =
  x + swiglu (rms_norm x norm 1e-6) up up down
```

Most functions take any float dtype and any axes in front, which shapes show as `...`; all operands of a call have one
dtype. Each is checked for every size with nothing left for run time, has tests with values by hand beside it (`kina
test src/kina/std/nn.kina`), and is compared with NumPy by reference and natively. A bracket stands where the arguments
do not tell all sizes: these are then given in order, `causal_mask[Q, K]`, by name from Python: `causal_mask(Q=2, K=5)`.
`examples/short/` has programs over it.
"""


def page() -> str:
    return HEAD + "".join(_section(name) for name in std.names())


def _section(name: str) -> str:
    source = std.find(name)
    assert source is not None
    title = source.text.splitlines()[0].removeprefix("// ")
    declarations = [d for d in parse(source).module.declarations if isinstance(d, ast.FunctionDeclaration)]
    rows = "".join(f"| `{_usage(d)}` | {' '.join(d.documentation.split())} |\n" for d in declarations)
    return f"\n## `{name}`\n\n{title}\n\n| | |\n|---|---|\n{rows}"


def _usage(d: ast.FunctionDeclaration) -> str:
    """How a function is called: its binders are shown where a call has to give them."""
    told = {item for p in d.parameters if p.type is not None for item in _told(p.type)}
    untold = [b for b in d.binders if b.name not in told]
    bracket = f"[{', '.join(('...' if b.segment else '') + b.name for b in d.binders)}]" if untold else ""
    return " ".join([d.name + bracket, *(p.name for p in d.parameters)])


def _told(e: ast.Expr) -> Iterator[str]:
    """The names that a type says something of by itself: sizes that are whole axes, segments, dtypes."""
    match e:
        case ast.Name(text=name) | ast.Spread(name=name):
            yield name
        case ast.Bracket(target=target, items=items):
            yield from _told(target)
            for item in items:
                yield from _told(item)
