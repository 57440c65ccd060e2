"""What one line of text looks like: the "basic" set of `LineFeatures`.

Each entry says one thing about a line and nothing about its place or its neighbours. The set is frozen:
results and model files depend on it, so that a better pattern is a new set, not a change of this one.
It was put together from what mails, logs and FAQs look like (McCallum, Freitag & Pereira 2000; Carvalho &
Cohen 2004) and from the errors of a classifier and a CRF in the first 200 messages of
`fetch_email_signatures`; a few versions were compared on all of its messages.

Lines are read with tabs expanded and without blanks at their end. Every pattern takes time in proportion to
the line: a log may hold a megabyte in one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_WORD = r"[^\W\d_]"
_ANY_CASE = re.IGNORECASE

# name -> regular expression that is searched for in the line
_SEARCHED: dict[str, re.Pattern[str]] = {
    # Structure
    "rule": re.compile(r"[^\w\s\"'().,<>]{5,}|_{5,}"),
    "framed": re.compile(r"^\s*([^\w\s])[^\w\n]*\w.*\1$"),
    "double dash alone": re.compile(r"^--$"),
    "begins with dash": re.compile(r"^\s*-+\s*\S"),
    "list item": re.compile(r"^\s*(?:[*+o•]|[\[(]?(?:\d+(?:\.\d+)*|[A-Za-z])[\]).:])\s+\S"),
    "row of numbers": re.compile(r"\d\s+[-.\d]+\s+[-.\d]*\d"),
    "columns": re.compile(r"\S\s{3,}\S"),
    "vertical bar": re.compile(r"\S\s*\|"),
    # Quoted lines, and the line that announces them
    "quote mark": re.compile(r"^\W{0,4}[>}]|^\s*[|:](?!.*[|:]$)"),
    "initials and quote mark": re.compile(r"^\s*\w{1,10}\s?>"),
    "announces a quote": re.compile(
        r"\b(?:writes?|wrote|said|says|asked)\b\s*[:,.>]*$|^\s*in (?:article|message)\b", _ANY_CASE
    ),
    # Fields of headers, logs and settings
    "mail header": re.compile(
        r"^(?:from|to|cc|subject|date|sent|sender|reply-to|message-id|references|in-reply-to|received"
        r"|organi[sz]ation|newsgroups|path|lines|distribution|keywords|summary|x-[\w-]+|nntp-[\w-]+"
        r"|followup-to|return-path|mime-version|content-[\w-]+):",
        _ANY_CASE,
    ),
    "header field": re.compile(r"^[A-Z][A-Za-z-]*:(?:\s|$)"),
    "field inside": re.compile(r"\S\s+[A-Za-z]+[:=]\s*\S"),
    "question or answer": re.compile(r"^\s*(?:Q|A|Question|Answer)[\d.]*[:.)]", _ANY_CASE),
    "log level": re.compile(r"\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL|TRACE)\b"),
    "time of day": re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?\b"),
    "date": re.compile(
        r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}[/.]\d{1,2}[/.]\d{2,4}\b"
        r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{1,4}\b",
        _ANY_CASE,
    ),
    # Addresses
    "e-mail address": re.compile(r"[\w.+%-]@[\w-]"),
    "address alone": re.compile(r"^\s*[(<]?[\w.+%-]+@[\w.-]+[)>]?$"),
    # "<...1...@...>" without a blank: from the first "<" of a word, by its next digit, to the "@" after it.
    "message number": re.compile(r"(?<!\S)[^\s<]*<[^\s\d]*\d[^\s@]*@\S+>"),
    "web address": re.compile(r"\b(?:https?|ftp|gopher)://|\bwww\.\w", _ANY_CASE),
    # Three labels or more, the first from a letter on: tried once per dotted chain, from its first letter.
    "host name": re.compile(
        r"(?<![\w-])(?<![\w-]\.)(?>(?:[\w-]|\.(?=[\w-]))*?\b(?=[a-z]))"
        r"[\w-]+(?:\.[\w-]+)+\.[a-z]{2,4}\b|\w!\w",
        _ANY_CASE,
    ),
    "phone number": re.compile(
        r"(?:\(\d{2,4}\)[\s./-]{0,2}|\+?\d{2,4}[\s./-]{1,2})\d{3,4}[\s.-]?\d{2,4}\b"
    ),
    "postcode": re.compile(
        r"\b[A-Z]{2}\.?,?\s+\d{5}\b|\b[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}\b|\b[A-Z]\d[A-Z] ?\d[A-Z]\d\b"
    ),
    "number sign": re.compile(r"#\s?\d"),
    # Words of people
    "word of contact": re.compile(
        r"\b(?:e-?mail|internet|bitnet|uucp|phone|tel|fax|voice|room|p\.?o\.?\s?box)\b", _ANY_CASE
    ),
    "word of an organisation": re.compile(
        r"\b(?:univ(?:ersity)?|dep(?:artmen)?t|institute?|college|school|lab(?:orator(?:y|ies))?"
        r"|inc|corp(?:oration)?|ltd|gmbh|company|cent(?:er|re)|division|street|ave(?:nue)?|road)\b",
        _ANY_CASE,
    ),
    "first or second person": re.compile(r"\b(?:i|me|my|we|us|our|you|your)\b(?![./@])", _ANY_CASE),
    "closing words": re.compile(
        r"^\s*(?:thanks?|thank you|thanx|regards|best|cheers|sincerely|yours|bye|ciao)\b", _ANY_CASE
    ),
    "opinion or disclaimer": re.compile(
        r"\b(?:disclaimers?|opinions?|views?|employer|speak(?:ing)? for)\b", _ANY_CASE
    ),
    "name alone": re.compile(rf"^\W*[A-Z]{_WORD}+(?:\s+[A-Z](?:\.|{_WORD}*))?\s+[A-Z]{_WORD}+\W*$"),
    # Shape
    "begins in upper case": re.compile(r"^\s*[^\W\d_a-z]"),
    "begins in lower case": re.compile(r"^\s*[a-z]"),
    "indented": re.compile(r"^ {2}"),
    "ends a sentence": re.compile(r"[.?!][\"')\]]*$"),
    "ends with question mark": re.compile(r"\?$"),
    "digit": re.compile(r"\d"),
}


def _share_of_marks(line: str) -> float:
    """Share of the characters (blanks aside) that are neither letters nor digits."""
    solid = "".join(line.split())
    return sum(not character.isalnum() for character in solid) / max(len(solid), 1)


# Words that make sentences, and are rare in names, addresses and tables.
_OF_PROSE = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been but by can could do does for from had has have he if in is it its not "
        "of on or she so than that the their then there these they this those to was were what when which "
        "who will with would",
    )
)


def _is_prose(line: str) -> bool:
    return sum(word in _OF_PROSE for word in re.findall(rf"{_WORD}+", line.lower())) >= 2


# name -> function of the line
_COMPUTED: dict[str, Callable[[str], bool]] = {
    "blank": lambda line: not line.strip(),
    "no letter or digit": lambda line: bool(line.strip()) and not any(c.isalnum() for c in line),
    "a fifth are marks": lambda line: _share_of_marks(line) >= 0.2,
    "all upper case": str.isupper,
    "words of prose": _is_prose,
    "one or two words": lambda line: 1 <= len(line.split()) <= 2,
    "eight words or more": lambda line: len(line.split()) >= 8,
    "short": lambda line: 0 < len(line.strip()) < 25,
    "long": lambda line: len(line) >= 60,
}

BASIC_NAMES = [*_COMPUTED, *_SEARCHED]
"""Names of the basic features, in the order of their columns."""


def basic_features(line: str) -> list[int]:
    """Columns of the basic features that a line has, ascending."""
    line = line.expandtabs().rstrip()
    found = [column for column, test in enumerate(_COMPUTED.values()) if test(line)]
    if line:
        first = len(_COMPUTED)
        found += [first + k for k, one in enumerate(_SEARCHED.values()) if one.search(line)]
    return found
