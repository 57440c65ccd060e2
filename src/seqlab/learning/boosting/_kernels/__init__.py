"""Compiled loops of tree boosting."""
