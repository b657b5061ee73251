"""Shows pipeline files that no DAG can be built from, and adapters that cannot be imported, as an import error.

In a file of its own, since an import error stops every DAG of its file.
"""

from pathlib import Path

from clickjoin_airflow import require_readable

require_readable(Path(__file__).with_name("pipelines"))
