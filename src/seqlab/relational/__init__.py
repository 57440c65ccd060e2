"""Relational features: conjunctions, mined patterns and what learners find with them."""
