"""One estimator per file; shared parts begin with an underscore."""
