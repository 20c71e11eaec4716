"""Experiments: what is run, how it is run and resumed, and what is made of the results."""
