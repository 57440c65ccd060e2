"""Hidden Markov model: counts and EM, emission distributions, sequences of symbols."""

from seqlab.models.hmm.hmm import HMM

__all__ = ["HMM"]
