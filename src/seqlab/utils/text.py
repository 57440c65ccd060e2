"""Text of unknown origin on a terminal: control characters are shown, not sent.

A token, a label or a feature name may contain escape sequences, which a terminal would obey: they can clear
the screen, change the title of the window or hide text.
"""

from __future__ import annotations

import re

# Control characters (C0, DEL, C1), line and paragraph separators, marks that change the direction of
# writing, and halves of surrogate pairs, which cannot be encoded.
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def show_controls(text: str) -> str:
    r"""Return a text with each control character as its escape in a Python string.

    Examples
    --------
    >>> print(show_controls("\x1b[2Jred\tfox"))
    \x1b[2Jred\tfox
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
