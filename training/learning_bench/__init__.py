"""What learning from use comes to, measured on worlds with a known truth: `python -m training.learning_bench`."""
