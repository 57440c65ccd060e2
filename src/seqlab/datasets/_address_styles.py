"""Address styles of different countries.

A style is a function that draws an address as a list of `Part`, each a text and its field; ``BREAK`` marks
the line breaks of an envelope, which are written as commas or left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from seqlab.datasets import _address_names as names

T = TypeVar("T")


class Part(NamedTuple):
    """A part of an address and its field; None if it belongs to no field."""

    text: str
    field: str | None


BREAK = Part(",", None)


class Draw:
    """Random choices from one RandomState."""

    def __init__(self, rng: np.random.RandomState) -> None:
        self._next = rng.random_sample

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._next() < probability

    def number(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return low + int(self._next() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[int(self._next() * len(options))]

    def digits(self, n: int) -> str:
        """A string of n digits."""
        return "".join(str(self.number(0, 9)) for _ in range(n))

    def letter(self) -> str:
        """A capital letter that postcodes use."""
        return self.pick("ABCDEFGHJKLMNPRSTUVWXYZ")


def _house(draw: Draw, *, long: bool = False) -> str:
    """Draw a house number: mostly small (larger on American roads), sometimes with a letter or a range."""
    highest = (60, 250, 2500, 15000) if long else (9, 30, 60, 250)
    number = draw.number(1, draw.pick(highest))
    if draw.chance(0.06):
        return f"{number}{draw.pick('ABCabc')}"
    return f"{number}-{number + 2}" if draw.chance(0.03) else str(number)


_FIRM_FORMS = {
    "us": ("Inc.", "LLC", "Corp."),
    "ca": ("Inc.", "Ltd."),
    "gb": ("Ltd", "Ltd.", "plc"),
    "au": ("Pty Ltd",),
    "de": ("GmbH", "AG", "GmbH & Co. KG"),
    "fr": ("SARL", "SA"),
    "es": ("S.L.", "S.A."),
    "it": ("S.r.l.", "S.p.A."),
    "nl": ("B.V.",),
}


def recipient(draw: Draw, country: str) -> list[Part]:
    """Draw a person or a firm."""
    if draw.chance(0.6):
        name = f"{draw.pick(names.FIRST_NAMES)} {draw.pick(names.LAST_NAMES)}"
        if draw.chance(0.2):
            name = f"{draw.pick(('Mr', 'Mrs', 'Ms', 'Dr', 'Dr.', 'Prof.'))} {name}"
        if draw.chance(0.05):
            name = f"c/o {name}"
    elif draw.chance(0.25):
        name = f"{draw.pick(names.LAST_NAMES)} & {draw.pick(('Sons', 'Daughters', 'Partners'))}"
    else:
        name = f"{draw.pick(names.FIRM_NAMES)} {draw.pick(names.FIRM_KINDS)}"
        if draw.chance(0.4):
            name += " " + draw.pick(_FIRM_FORMS[country])
    return [Part(name, "Recipient"), BREAK]


def _english_street(draw: Draw, roads: Sequence[Sequence[str]]) -> str:
    return f"{draw.pick(names.ENGLISH_STREETS)} {draw.pick(draw.pick(roads))}"


def _country(draw: Draw, share: float, *options: str) -> list[Part]:
    """Draw the last line of an address, in one of its spellings, which only a share of them has."""
    if not draw.chance(share):
        return []
    return [BREAK, Part(draw.pick(options) if len(options) > 1 else options[0], "Country")]


def _us_unit(draw: Draw) -> str:
    number = draw.pick((str(draw.number(1, 40)), f"{draw.number(1, 30)}{draw.pick('ABCD')}"))
    kind = draw.pick(("Apt", "Apt.", "Apartment", "Suite", "Ste", "Unit", "Floor", "Rm", "#"))
    return f"#{number}" if kind == "#" and draw.chance(0.6) else f"{kind} {number}"


def united_states(draw: Draw) -> list[Part]:
    """12 Oak Street, Apt 4, Springfield, IL 62701."""
    parts: list[Part] = []
    town = draw.pick(names.US_TOWNS)
    if draw.chance(0.12):
        box = draw.pick(("PO Box", "P.O. Box", "P O Box", "Box"))
        parts += [Part(f"{box} {draw.number(1, 9999)}", "POBox"), BREAK]
    else:
        street = _english_street(draw, names.ROADS)
        if draw.chance(0.25):
            side = draw.pick(("N", "S", "E", "W", "N.", "North", "West"))
            street = f"{side} {street}"
        elif draw.chance(0.12):
            street += " " + draw.pick(("NW", "NE", "SW", "SE"))
        parts += [Part(_house(draw, long=True), "HouseNumber"), Part(street, "Street")]
        if draw.chance(0.3):
            parts += [BREAK] if draw.chance(0.7) else []
            parts.append(Part(_us_unit(draw), "Unit"))
        parts.append(BREAK)
    parts += [Part(town.name, "City"), BREAK]
    region = town.region
    if region in names.STATE_NAMES and draw.chance(0.2):
        region = names.STATE_NAMES[region]
    if draw.chance(0.95):
        parts.append(Part(region, "Region"))
    if draw.chance(0.9):
        code = town.code + draw.digits(2)
        parts.append(Part(f"{code}-{draw.digits(4)}" if draw.chance(0.12) else code, "Postcode"))
    return parts + _country(draw, 0.15, "USA", "United States", "U.S.A.", "US")


def united_kingdom(draw: Draw) -> list[Part]:
    """Flat 2, 14 Mill Lane, Leeds, West Yorkshire, LS6 2AB."""
    parts: list[Part] = []
    town = draw.pick(names.UK_TOWNS)
    if draw.chance(0.25):
        unit = draw.pick(("Flat", "Unit", "Apartment", "Room"))
        parts += [Part(f"{unit} {draw.pick((draw.number(1, 60), draw.letter()))}", "Unit"), BREAK]
    if draw.chance(0.15):
        parts += [Part(draw.pick(names.BUILDINGS), "Building"), BREAK]
    if draw.chance(0.95) or not parts:
        parts.append(Part(_house(draw), "HouseNumber"))
    parts += [Part(_english_street(draw, names.UK_ROADS), "Street"), BREAK]
    parts.append(Part(town.name, "City"))
    if town.region and draw.chance(0.4):
        parts += [BREAK, Part(town.region, "Region")]
    if draw.chance(0.93):
        parts += [BREAK] if draw.chance(0.6) else []
        inward = f"{draw.number(1, 9)}{draw.letter()}{draw.letter()}"
        gap = "" if draw.chance(0.08) else " "
        parts.append(Part(f"{town.code}{draw.number(1, 19)}{gap}{inward}", "Postcode"))
    countries = ("UK", "United Kingdom", "England", "Great Britain", "GB")
    return parts + _country(draw, 0.15, *countries)


def germany(draw: Draw) -> list[Part]:
    """Lindenstraße 5, 10115 Berlin."""
    parts: list[Part] = []
    town = draw.pick(names.GERMAN_TOWNS)
    if draw.chance(0.08):
        parts.append(Part(f"Postfach {draw.digits(2)} {draw.digits(2)} {draw.digits(2)}", "POBox"))
    else:
        street = draw.pick(names.GERMAN_STREETS)
        if street.endswith("straße"):
            street = street.removesuffix("straße") + draw.pick(("straße", "straße", "str.", "str"))
        parts += [Part(street, "Street"), Part(_house(draw), "HouseNumber")]
        if draw.chance(0.12):
            floor = draw.pick(("2. OG", "1. Stock", "EG links", "Hinterhaus", "c/o WG", "App. 12"))
            parts += [BREAK, Part(floor, "Unit")]
    code = town.code + draw.digits(3)
    if draw.chance(0.05):
        code = f"D-{code}"
    parts += [BREAK, Part(code, "Postcode"), Part(town.name, "City")]
    return parts + _country(draw, 0.15, "Deutschland", "Germany", "DE")


def france(draw: Draw) -> list[Part]:
    """12 bis rue de la Paix, 75002 Paris."""
    parts: list[Part] = []
    town = draw.pick(names.FRENCH_TOWNS)
    if draw.chance(0.2):
        unit = draw.pick(("Appt", "Appartement", "Bât.", "Bâtiment", "Escalier", "Étage"))
        parts += [Part(f"{unit} {draw.pick((draw.number(1, 30), draw.letter()))}", "Unit"), BREAK]
    if draw.chance(0.06):
        parts.append(Part(f"BP {draw.number(1, 999)}", "POBox"))
    else:
        number = _house(draw)
        if draw.chance(0.1):
            number += draw.pick((" bis", " ter"))
        kind = draw.pick(("rue", "rue", "Rue", "avenue", "av.", "boulevard", "bd", "place", "quai",
                          "impasse", "chemin", "allée"))  # fmt: skip
        parts += [Part(number, "HouseNumber")]
        parts += [BREAK] if draw.chance(0.2) else []
        parts.append(Part(f"{kind} {draw.pick(names.FRENCH_STREETS)}", "Street"))
    parts += [BREAK, Part(town.code + draw.digits(2), "Postcode")]
    city = town.name
    if draw.chance(0.08):
        city += " " + draw.pick(("Cedex", "CEDEX 09", "Cedex 3"))
    parts.append(Part(city, "City"))
    return parts + _country(draw, 0.12, "France")


def canada(draw: Draw) -> list[Part]:
    """4-120 King Street W, Toronto ON M5H 1A1."""
    town = draw.pick(names.CANADIAN_TOWNS)
    parts: list[Part] = []
    if draw.chance(0.15):
        parts += [Part(f"Unit {draw.number(1, 99)}", "Unit"), BREAK]
    street = _english_street(draw, names.ROADS)
    if draw.chance(0.25):
        street += " " + draw.pick(("W", "E", "West", "East"))
    parts += [Part(_house(draw, long=True), "HouseNumber"), Part(street, "Street"), BREAK]
    parts.append(Part(town.name, "City"))
    parts += [BREAK] if draw.chance(0.5) else []
    parts.append(Part(town.region, "Region"))
    first = f"{town.code}{draw.number(1, 9)}{draw.letter()}"
    second = f"{draw.number(1, 9)}{draw.letter()}{draw.number(1, 9)}"
    parts.append(Part(f"{first} {second}", "Postcode"))
    return parts + _country(draw, 0.3, "Canada")


def australia(draw: Draw) -> list[Part]:
    """3/27 Albert Street, Geelong VIC 3220."""
    town = draw.pick(names.AUSTRALIAN_TOWNS)
    number = _house(draw)
    parts: list[Part] = []
    if draw.chance(0.12):
        parts += [Part(f"Level {draw.number(1, 40)}", "Unit"), BREAK]
    elif draw.chance(0.25):
        number = f"{draw.number(1, 20)}/{number}"
    parts += [
        Part(number, "HouseNumber"),
        Part(_english_street(draw, names.UK_ROADS), "Street"),
        BREAK,
    ]
    parts += [Part(town.name, "City"), Part(town.region, "Region")]
    parts.append(Part(town.code + draw.digits(2), "Postcode"))
    return parts + _country(draw, 0.25, "Australia")


def spain(draw: Draw) -> list[Part]:
    """Calle Mayor 12, 3º B, 28013 Madrid."""
    town = draw.pick(names.SPANISH_TOWNS)
    kind = draw.pick(("Calle", "C/", "Avenida", "Avda.", "Plaza", "Paseo"))
    parts = [Part(f"{kind} {draw.pick(names.SPANISH_STREETS)}", "Street")]
    parts += [BREAK] if draw.chance(0.4) else []
    parts.append(Part(str(draw.number(1, 180)), "HouseNumber"))
    if draw.chance(0.45):
        door = draw.pick(("A", "B", "C", "izq.", "dcha."))
        parts += [BREAK, Part(f"{draw.number(1, 8)}º {door}", "Unit")]
    parts += [BREAK, Part(town.code + draw.digits(3), "Postcode"), Part(town.name, "City")]
    if town.region and draw.chance(0.6):
        parts += [BREAK, Part(town.region, "Region")]
    return parts + _country(draw, 0.2, "España", "Spain")


def italy(draw: Draw) -> list[Part]:
    """Via Garibaldi 7, 40124 Bologna BO."""
    town = draw.pick(names.ITALIAN_TOWNS)
    kind = draw.pick(("Via", "Via", "Corso", "Piazza", "Viale", "Largo"))
    parts = [Part(f"{kind} {draw.pick(names.ITALIAN_STREETS)}", "Street")]
    parts += [BREAK] if draw.chance(0.5) else []
    parts.append(Part(_house(draw), "HouseNumber"))
    if draw.chance(0.15):
        parts += [BREAK, Part(f"Interno {draw.number(1, 20)}", "Unit")]
    parts += [BREAK, Part(town.code + draw.digits(3), "Postcode"), Part(town.name, "City")]
    if draw.chance(0.7):
        parts.append(Part(draw.pick((town.region, f"({town.region})")), "Region"))
    return parts + _country(draw, 0.2, "Italia", "Italy")


def netherlands(draw: Draw) -> list[Part]:
    """Kerkstraat 21-II, 1017 GA Amsterdam."""
    town = draw.pick(names.DUTCH_TOWNS)
    number = str(draw.number(1, 350))
    if draw.chance(0.2):
        number += draw.pick(("A", "-II", " hs", "bis"))
    code = f"{town.code}{draw.digits(2)}{draw.pick(('', ' ', ' '))}{draw.letter()}{draw.letter()}"
    parts = [Part(draw.pick(names.DUTCH_STREETS), "Street"), Part(number, "HouseNumber"), BREAK]
    parts += [Part(code, "Postcode"), Part(town.name, "City")]
    return parts + _country(draw, 0.2, "Nederland", "The Netherlands", "NL")


# Country code: function that draws an address, and its share of all addresses.
STYLES: dict[str, tuple[Callable[[Draw], list[Part]], float]] = {
    "us": (united_states, 0.34),
    "gb": (united_kingdom, 0.18),
    "de": (germany, 0.12),
    "fr": (france, 0.12),
    "ca": (canada, 0.06),
    "au": (australia, 0.05),
    "es": (spain, 0.05),
    "it": (italy, 0.04),
    "nl": (netherlands, 0.04),
}
