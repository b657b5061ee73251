"""A master that does not answer is said before Spark starts."""

from __future__ import annotations

import socket

import pytest

from clickjoin.model.errors import ServerLost
from clickjoin.spark.master import require_answer


def test_one_of_several_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_server(("127.0.0.1", 0)) as other:
        port, closed = listening.getsockname()[1], other.getsockname()[1]
        other.close()
        require_answer(f"spark://127.0.0.1:{port}")
        require_answer(f"spark://127.0.0.1:{closed},127.0.0.1:{port}")
        with pytest.raises(ServerLost, match=f"spark://127.0.0.1:{closed}: no Spark master answers"):
            require_answer(f"spark://127.0.0.1:{closed}")
    require_answer("local[2]")
