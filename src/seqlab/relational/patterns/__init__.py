"""Relational patterns: conjunctions of literals in a window around a step, found by level-wise search."""

from seqlab.relational.literals import Literal
from seqlab.relational.patterns.language import PatternLanguage
from seqlab.relational.patterns.matching import BitColumns, match_patterns
from seqlab.relational.patterns.mining import MinedPattern, PatternBudgetWarning, mine_patterns
from seqlab.relational.patterns.pattern import Pattern

__all__ = [
    "BitColumns",
    "Literal",
    "MinedPattern",
    "Pattern",
    "PatternBudgetWarning",
    "PatternLanguage",
    "match_patterns",
    "mine_patterns",
]
