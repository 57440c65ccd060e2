"""Sets of disjoint phrases: costs, constraints, shortest paths and integer programs."""
