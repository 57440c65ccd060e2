"""Read many damaged texts: ``python tests/fuzz_readers.py [SECONDS [SEED]]``.

Every reader of `seqlab.data.io`, and templates. Each case must be read or raise a typed error, in at most two
seconds of processor time. The suite runs a small sample (tests/data/io/test_damaged_text.py); ``make fuzz``
runs this script.
"""

from __future__ import annotations

import collections
import sys
import time
import traceback
import warnings

from hostile_text import TARGETS, check_case

MAX_SECONDS = 2.0


def main(seconds: int = 120, seed: int = 0) -> None:
    """Run cases until the time is over and print the outcome; exit with 1 if one failed."""
    warnings.simplefilter("ignore")
    for name in TARGETS:  # compile the kernels
        check_case(name, 0)
    found: collections.Counter[str] = collections.Counter()
    failures: list[str] = []
    slowest = 0.0
    end = time.monotonic() + seconds
    case = 10**9 * seed
    while time.monotonic() < end:
        for name in TARGETS:
            begin = time.process_time()
            try:
                found[f"{name}: {check_case(name, case)}"] += 1
            except Exception:  # any other kind of error is a failure
                failures.append(f"{name} {case}:\n{traceback.format_exc()[-1500:]}")
            used = time.process_time() - begin
            if used > MAX_SECONDS:
                failures.append(f"{name} {case}: {used:.1f} s")
            slowest = max(slowest, used)
        case += 1
    for outcome, count in sorted(found.items()):
        print(f"{count:9,}  {outcome}")
    print(f"{sum(found.values()):,} cases, slowest {slowest:.2f} s, {len(failures)} failures")
    print(*failures[:20], sep="\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
