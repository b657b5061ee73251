"""Workers read without pandas, whose import would cost every new worker a second."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

READ = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from tests.unit.sources_bench import Feed, event, spec
folder = Path({folder!r})
(folder / "a.jsonl").write_bytes(event(1) + b"{{bad\\n" + b'{{"id":1,"t":2.5}}\\n' + event(2))
(folder / "b.csv").write_bytes(b"id,x\\nh:1:1574562822000001,1\\nbad\\n")
from clickjoin.sources.records import read_chunk
for pattern in ("a.jsonl", "b.csv"):
    feed = Feed(folder, pattern)
    for chunk in feed.source._chunks(feed.plan().slices)[0]:
        assert len(list(read_chunk(chunk, spec()))) >= 2
        list(read_chunk(chunk, spec(event_time="t", primary_id="q", primary_time="uuid7")))
print("pandas" in sys.modules)
"""


def test_reading_imports_no_pandas(tmp_path: Path) -> None:
    code = READ.format(path=[entry for entry in sys.path if entry], folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("False", "")
