"""Compiled loops of the chain: arrays in, arrays out."""
