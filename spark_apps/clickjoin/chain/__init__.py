"""Pipelines that read the output of others: who reads whom, and how far an upstream has come.

What knows two pipelines at once enters here; what a table or a batch is does not.
"""
