"""The only package that reads and writes Delta."""

from clickjoin.lake.lake import Lake, is_conflict
from clickjoin.lake.small import SmallTables
from clickjoin.lake.txn import Txn

__all__ = ["Lake", "SmallTables", "Txn", "is_conflict"]
