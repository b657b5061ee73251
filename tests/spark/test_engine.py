"""One replica on real files: what joins, what repeats, and what is written where."""

from tests.spark.bench import click, query


def test_first(bench):
    b = bench()
    q = query("q")
    c = click("c", 1, q)
    b.queries(q); b.clicks(c, c)
    print(b.join())
    print(b.join)
    b.queries(query("q", 2)); b.clicks(click("d", 2, q))
    print(b.join())
    b.clicks(click("e", 2, query("q", 5)))
    print(b.join())
    print(b.all_tables())
    print(b.accounts())
