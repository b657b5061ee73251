"""The documentation's site: an environment of its own, and what mkdocs has to know of files outside of docs/."""
