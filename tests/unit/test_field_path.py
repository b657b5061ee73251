"""Paths of values inside a record: how they are written, and what is said of a wrong one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickjoin.model.errors import ConfigError
from clickjoin.model.field_path import parse_path, path_text


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("id", ("id",)),
        ("meta.ids[0]", ("meta", "ids", 0)),
        ("a[1][2].b", ("a", 1, 2, "b")),
        ("`a.b`.c", ("a.b", "c")),
        ("x.`a[0]`[3]", ("x", "a[0]", 3)),
        ("`a``b`", ("a`b",)),
        ("größe.page no", ("größe", "page no")),
        ("a.0", ("a", "0")),
        ("$.x-y", ("$", "x-y")),
    ],
)
def test_parsed(text, path):
    assert parse_path(text) == path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "path '': it is empty"),
        ("a.", "path 'a.': it ends with a dot"),
        (".a", "a key was expected at character 1, not '.'"),
        ("a..b", "a key was expected at character 3, not '.'"),
        ("[0].a", r"a key was expected at character 1, not '\['"),
        ("a.[0]", r"a key was expected at character 3, not '\['"),
        ("a[x]", r"an index such as \[0\], or the end was expected at character 2, not '\['"),
        ("a[-1]", r"expected at character 2, not '\['"),
        ("a[0]b", "a dot, an index such as .* was expected at character 5, not 'b'"),
        ("a]b", "expected at character 2, not ']'"),
        ("`a.b", "the backtick at character 1 opens no key that another one closes"),
        ("a.``", "the backtick at character 3 opens no key"),
        ("`a`b", "expected at character 4, not 'b'"),
    ],
)
def test_wrong(text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        parse_path(text)
    assert "backticks around a key" in caught.value.remedy


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4), st.lists(st.integers(0, 10**9 - 1), max_size=3))
def test_written_as_read(keys, indexes):
    path = (*keys, *indexes)
    assert parse_path(path_text(path)) == path
