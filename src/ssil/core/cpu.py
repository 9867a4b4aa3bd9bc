"""How CPU threads wait for each other: a setting of OpenMP that must be made before torch is imported."""

import os
from collections.abc import MutableMapping

SPIN_COUNT = "1000"
"""How often a thread of OpenMP looks again whether the others are ready before it sleeps.

The default of libgomp is about 300,000 times: while another program has the core that a late thread needs, the waiting
thread keeps its own core busy. See docs/results/speed.md for measurements.
"""


def bound_spinning(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let waiting threads of OpenMP sleep early, unless the environment already sets how they wait.

    libgomp, which torch uses on Linux, reads the variable when it is loaded, so this must precede `import torch`.

    >>> environment = {}
    >>> bound_spinning(environment)
    >>> environment
    {'GOMP_SPINCOUNT': '1000'}
    """
    if "OMP_WAIT_POLICY" not in environment:
        environment.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
