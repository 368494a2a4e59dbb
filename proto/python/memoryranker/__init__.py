"""What a Python agent imports: the client and the generated messages."""
