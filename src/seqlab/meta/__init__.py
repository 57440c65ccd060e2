"""Meta-estimators: classifiers for single steps, stacking, output codes, features with a labeler as one."""
