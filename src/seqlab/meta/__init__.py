"""Meta-estimators: classifiers for single steps, stacking, and features with a labeler as one estimator."""
