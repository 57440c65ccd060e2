"""Features of a single line of text: the "basic" set of `LineFeatures`.

Each feature describes a line without its position and its neighbours. The set is frozen, because results
and model files depend on it: better patterns belong in a new set. It was designed from typical mails, logs
and FAQs (McCallum, Freitag & Pereira 2000; Carvalho & Cohen 2004) and from the errors of a classifier and a
CRF in the first 200 messages of `fetch_email_signatures`; a few versions were compared on all of its
messages.

Tabs are expanded and trailing blanks removed before the patterns are applied. Every pattern takes time
proportional to the length of the line, because a single line of a log may have a megabyte.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_LETTER = r"[^\W\d_]"
_ANY_CASE = re.IGNORECASE

# Name -> regular expression to search for in the line.
_PATTERNS: dict[str, re.Pattern[str]] = {
    # Structure
    "rule": re.compile(r"[^\w\s\"'().,<>]{5,}|_{5,}"),
    "framed": re.compile(r"^\s*([^\w\s])[^\w\n]*\w.*\1$"),
    "double dash alone": re.compile(r"^--$"),
    "begins with dash": re.compile(r"^\s*-+\s*\S"),
    "list item": re.compile(r"^\s*(?:[*+o•]|[\[(]?(?:\d+(?:\.\d+)*|[A-Za-z])[\]).:])\s+\S"),
    "row of numbers": re.compile(r"\d\s+[-.\d]+\s+[-.\d]*\d"),
    "columns": re.compile(r"\S\s{3,}\S"),
    "vertical bar": re.compile(r"\S\s*\|"),
    # Quoted lines, and lines that introduce them
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
    # "<...1...@...>" without blanks: the first "<" of a word, the next digit, then the next "@".
    "message number": re.compile(r"(?<!\S)[^\s<]*<[^\s\d]*\d[^\s@]*@\S+>"),
    "web address": re.compile(r"\b(?:https?|ftp|gopher)://|\bwww\.\w", _ANY_CASE),
    # Three or more dotted parts, counted from the first letter. For speed, each chain of dotted parts is
    # tried only once, from its first letter.
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
    # Words of contacts and letters
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
    "name alone": re.compile(
        rf"^\W*[A-Z]{_LETTER}+(?:\s+[A-Z](?:\.|{_LETTER}*))?\s+[A-Z]{_LETTER}+\W*$"
    ),
    # Shape
    "begins in upper case": re.compile(r"^\s*[^\W\d_a-z]"),
    "begins in lower case": re.compile(r"^\s*[a-z]"),
    "indented": re.compile(r"^ {2}"),
    "ends a sentence": re.compile(r"[.?!][\"')\]]*$"),
    "ends with question mark": re.compile(r"\?$"),
    "digit": re.compile(r"\d"),
}


def _punctuation_share(line: str) -> float:
    """Share of characters that are neither letters nor digits; blanks are not counted."""
    solid = "".join(line.split())
    return sum(not character.isalnum() for character in solid) / max(len(solid), 1)


# Words that are frequent in sentences and rare in names, addresses and tables.
_PROSE_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been but by can could do does for from had has have he if in is it its not "
        "of on or she so than that the their then there these they this those to was were what when which "
        "who will with would",
    )
)


def _is_prose(line: str) -> bool:
    return sum(word in _PROSE_WORDS for word in re.findall(rf"{_LETTER}+", line.lower())) >= 2


# Name -> predicate of the line.
_PREDICATES: dict[str, Callable[[str], bool]] = {
    "blank": lambda line: not line.strip(),
    "no letter or digit": lambda line: bool(line.strip()) and not any(c.isalnum() for c in line),
    "a fifth are marks": lambda line: _punctuation_share(line) >= 0.2,
    "all upper case": str.isupper,
    "words of prose": _is_prose,
    "one or two words": lambda line: 1 <= len(line.split()) <= 2,
    "eight words or more": lambda line: len(line.split()) >= 8,
    "short": lambda line: 0 < len(line.strip()) < 25,
    "long": lambda line: len(line) >= 60,
}

BASIC_NAMES = [*_PREDICATES, *_PATTERNS]
"""Names of the basic features, in the order of their columns."""


def basic_features(line: str) -> list[int]:
    """Return the columns of the basic features of a line, in ascending order."""
    line = line.expandtabs().rstrip()
    found = [column for column, test in enumerate(_PREDICATES.values()) if test(line)]
    if line:
        first = len(_PREDICATES)
        found += [first + k for k, regex in enumerate(_PATTERNS.values()) if regex.search(line)]
    return found
