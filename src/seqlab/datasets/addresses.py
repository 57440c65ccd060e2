"""Generated postal addresses with a label per token, for experiments and for the demo.

Addresses of nine countries in their national formats, with recipients, flats, boxes and missing parts;
some are written carelessly (lower case, capitals, no commas, no accents, typing errors). All of them are
invented; any similarity to real addresses is coincidental.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from seqlab.data.errors import InputError
from seqlab.datasets._address_styles import BREAK, STYLES, Draw, Part, recipient
from seqlab.datasets._helpers import check_count, check_random_state, make_result

if TYPE_CHECKING:
    from sklearn.utils import Bunch

FIELDS = (
    "Recipient",
    "POBox",
    "Unit",
    "Building",
    "HouseNumber",
    "Street",
    "City",
    "Region",
    "Postcode",
    "Country",
)
_RECIPIENT_SHARE = 0.35
_GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ö": "Oe", "Ü": "Ue"})

_DESCR = """\
Generated addresses
-------------------
{n} invented postal addresses of {countries}. A token is (text,); labels are IOB2 over the
fields Recipient, POBox, Unit, Building, HouseNumber, Street, City, Region, Postcode, Country;
separating commas are O.
"""


def make_addresses(
    n: int = 1000,
    *,
    countries: Sequence[str] | None = None,
    noise: float = 0.3,
    random_state: Any = None,
    return_X_y: bool = False,
) -> Bunch | tuple[list[list[tuple[str]]], list[list[str]]]:
    """Generate street addresses with a field label per token.

    Parameters
    ----------
    n : int, default=1000
        Number of addresses.
    countries : sequence of str, optional
        Styles to use: "us", "gb", "de", "fr", "ca", "au", "es", "it", "nl"; by default all of them,
        in fixed shares.
    noise : float, default=0.3
        Share of addresses that are written carelessly: in lower case or capitals, without commas,
        without accents or with typing errors.
    random_state : int, RandomState or None
        Seed of the generator.
    return_X_y : bool, default=False
        Whether to return only ``(data, target)``.

    Returns
    -------
    Bunch
        ``data`` (list of addresses of (token,)), ``target`` (list of IOB2 label lists), ``text``
        (the addresses as plain lines), ``country`` (array of codes), ``feature_names``,
        ``target_names``, ``DESCR``.

    Examples
    --------
    >>> from seqlab.datasets import make_addresses
    >>> data = make_addresses(3, countries=["us", "de"], noise=0, random_state=1)
    >>> for line in data.text:
    ...     print(line)
    P.O. Box 1468, Tulsa, OK 74133
    Poststr. 2, 10688 Berlin, Deutschland
    11223 Commerce Ln. SE, Apt 37, Billings, MT 59124-5156, United States
    >>> for (token,), label in list(zip(data.data[1], data.target[1]))[:3]:
    ...     print(token, label)
    Poststr. B-Street
    2 B-HouseNumber
    , O
    """
    check_count(n, "n")
    if isinstance(countries, str):
        raise InputError(
            f"countries must be a list of codes, got {countries!r}; write [{countries!r}]"
        )
    if countries is not None and not countries:
        raise InputError("countries is empty")
    codes = list(STYLES) if countries is None else list(countries)
    for code in codes:
        if code not in STYLES:
            raise InputError(f"unknown country {code!r}; known are {', '.join(STYLES)}")
    if not 0 <= noise <= 1:
        raise InputError(f"noise must be between 0 and 1, got {noise}")
    rng = check_random_state(random_state)
    draw = Draw(rng)
    shares = np.cumsum([STYLES[code][1] for code in codes])
    data: list[list[tuple[str]]] = []
    target: list[list[str]] = []
    chosen: list[str] = []
    for _ in range(n):
        code = codes[int(np.searchsorted(shares, rng.random_sample() * shares[-1], side="right"))]
        parts = STYLES[code][0](draw)
        if draw.chance(_RECIPIENT_SHARE):
            parts = recipient(draw, code) + parts
        if draw.chance(noise):
            parts = _add_noise(parts, code, draw)
        while parts[-1] == BREAK:
            parts.pop()
        tokens, labels = _label(parts)
        data.append([(token,) for token in tokens])
        target.append(labels)
        chosen.append(code)
    if return_X_y:
        return data, target
    return make_result(
        return_X_y=False,
        data=data,
        target=target,
        text=[_plain([token for (token,) in tokens]) for tokens in data],
        country=np.array(chosen, dtype="U2"),
        feature_names=["token"],
        target_names=["O", *(f"{prefix}-{field}" for field in FIELDS for prefix in "BI")],
        DESCR=_DESCR.format(n=n, countries=", ".join(codes)),
    )


def _label(parts: list[Part]) -> tuple[list[str], list[str]]:
    """Split parts into tokens with IOB2 labels."""
    tokens: list[str] = []
    labels: list[str] = []
    for text, field in parts:
        words = text.split()
        tokens += words
        if field is None:
            labels += ["O"] * len(words)
        else:
            labels += [f"B-{field}"] + [f"I-{field}"] * (len(words) - 1)
    return tokens, labels


def _plain(tokens: list[str]) -> str:
    """Join tokens to a line of text, without spaces before commas."""
    return " ".join(tokens).replace(" ,", ",")


def _add_noise(parts: list[Part], country: str, draw: Draw) -> list[Part]:
    """Remove commas, change case, remove accents or add typing errors, each with some probability."""
    if draw.chance(0.4):
        parts = [part for part in parts if part != BREAK or draw.chance(0.15)]
    if draw.chance(0.4):
        change = str.upper if draw.chance(0.4) else str.lower
        parts = [Part(change(part.text), part.field) for part in parts]
    if draw.chance(0.3):
        parts = [Part(_remove_accents(part.text, country), part.field) for part in parts]
    if draw.chance(0.5):
        parts = [Part(_add_typing_errors(part.text, draw), part.field) for part in parts]
    return parts


def _remove_accents(text: str, country: str) -> str:
    """Remove accents; German umlauts become two letters."""
    if country == "de":
        text = text.translate(_GERMAN)
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def _add_typing_errors(text: str, draw: Draw) -> str:
    """Delete or double a letter, or swap it with the next one, in some words."""
    words = text.split(" ")
    for k, word in enumerate(words):
        if len(word) < 5 or not word.isalpha() or not draw.chance(0.12):
            continue
        at = draw.number(1, len(word) - 2)
        kind = draw.pick(("drop", "double", "swap"))
        if kind == "drop":
            words[k] = word[:at] + word[at + 1 :]
        elif kind == "double":
            words[k] = word[: at + 1] + word[at:]
        else:
            words[k] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return " ".join(words)
