"""`python -m clickjoin.cli`."""

from clickjoin.cli.main import main

main()
