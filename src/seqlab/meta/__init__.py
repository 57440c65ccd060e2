"""Learners over learners: any classifier step by step, features and labeler as one."""
