"""The commands of `clickjoin`, by what they are for."""

from clickjoin.commands import begin, check, copies, dates, keep, look, work
from clickjoin.commands.base import app

__all__ = ["app", "begin", "check", "copies", "dates", "keep", "look", "work"]
