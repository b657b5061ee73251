"""Delta tables as sources: what each version added, by its log. Their offsets are versions and rows of them."""
