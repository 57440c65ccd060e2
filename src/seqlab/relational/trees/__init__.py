"""Relational regression trees: queries with variables as tests."""
