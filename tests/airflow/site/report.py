"""`python report.py FOLDER`: quality reports as Great Expectations writes them, in FOLDER/closed and FOLDER/failing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["GX_ANALYTICS_ENABLED"] = "false"

import great_expectations as gx
import pandas as pd


def report(folder: Path, *, bad: bool) -> None:
    """One, of four rows."""
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder)}
    context.add_data_docs_site("report", {"class_name": "SiteBuilder", "store_backend": store,
                                          "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"}})  # fmt: skip
    batch = (
        context.data_sources.add_pandas("lake")
        .add_dataframe_asset("joined")
        .add_batch_definition_whole_dataframe("day")
    )
    wanted = [gx.expectations.ExpectColumnValuesToBeUnique(column="event_id"),
              gx.expectations.ExpectColumnValuesToBeBetween(column="seconds_after_query", min_value=0)]  # fmt: skip
    suite = context.suites.add(gx.ExpectationSuite("joined", expectations=wanted))
    whole = context.validation_definitions.add(gx.ValidationDefinition(data=batch, suite=suite, name="joined"))
    rows = pd.DataFrame(
        {"event_id": ["a", "b", "c", "d"], "seconds_after_query": [1.5, 2.0, 0.4, -3.0 if bad else 3.0]}
    )
    whole.run(batch_parameters={"dataframe": rows})
    docs = gx.checkpoint.UpdateDataDocsAction(name="docs", site_names=["report"])
    checkpoint = gx.Checkpoint(name="report", validation_definitions=[whole], actions=[docs])
    context.checkpoints.add(checkpoint).run(batch_parameters={"dataframe": rows})


if __name__ == "__main__":
    for state in ("closed", "failing"):
        report(Path(sys.argv[1], state), bad=state == "failing")
