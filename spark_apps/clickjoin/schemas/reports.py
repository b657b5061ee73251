"""Tables that people read: what became of each date, and what its data's quality was."""

from __future__ import annotations

from clickjoin.schemas.base import Table, columns

DATES = Table(
    "dates",
    "what became of each date of event time (UTC): the newest row of a date that is not held is its state",
    columns(
        """
date         DATE      date of the foreign events' own time, UTC
at           TIMESTAMP when this row was written
run          STRING    the run that wrote it: as its scheduler names it, else replica/microseconds; of a hold its name
action       STRING    close | fill | rebuild | hold
state        STRING    closed | failing | open: complete; something failed; its input is not all there; held: by a run
revision     INT       grows with each row of the date that says closed and whose output differs from the last one
detail       STRING    why it is failing or open, in a sentence; else null
watermark    TIMESTAMP no event before this was unread when the row was written; null where no stream holds any
version      BIGINT    version of `joined` that the row speaks of
accepted     BIGINT    distinct foreign ids of the date
joined       BIGINT    of these, joined
pending      BIGINT    of these, still waiting for their primary event
unjoinable   BIGINT    of these, given up
expired      BIGINT    of these, too old for the registry
filtered     BIGINT    of these, dropped by the adapter
forgotten    BIGINT    of these, forgotten on request
fingerprint  STRING    of the ids and rows of the output: equal where nothing has changed
faults       BIGINT    faults that verification left
failed       BIGINT    quality checks of level fail that did not pass
warned       BIGINT    quality checks of level warn that did not pass
report       STRING    folder of the quality report (Data Docs); null where none was made
seconds      DOUBLE    seconds that it all took; of a hold, how long it lasts from `at` on
"""
    ),
    statistics=("date", "at"),
)
QUALITY = Table(
    "quality",
    "one row a check and date and run of the quality suites",
    columns(
        """
run          STRING    replica/microseconds: one run of the suites
at           TIMESTAMP when it began
date         DATE      date of event time (UTC) that it covers
suite        STRING    the table that was checked: joined | primary | foreign | registry; or a suite of your own
check        STRING    name of the check, unique in its suite
expectation  STRING    Great Expectations' name of it
column       STRING    the column it looks at; null where it looks at the whole table
level        STRING    fail | warn: what it means if it does not pass
success      BOOLEAN   whether it passed; null where it could not be decided (no history yet)
observed     DOUBLE    what was measured, where that is a number
expected     STRING    what was asked for, as text
unexpected   BIGINT    rows that did not pass; null where it looks at an aggregate
share        DOUBLE    share of the rows that did not pass; null where it looks at an aggregate
samples      STRING    JSON list of up to five ids or values that did not pass; of a schema, its fields with types
detail       STRING    what to look at, in a sentence; null where it passed
seconds      DOUBLE    seconds that the whole run took
"""
    ),
    statistics=("date", "at"),
)
FAILURES = Table(
    "failures",
    "the first hundred rows that did not pass a check, by run, date and check: for queries that join them",
    columns(
        """
run          STRING    replica/microseconds: the run of the suites
at           TIMESTAMP when it began
date         DATE      date of event time (UTC) that it covers
suite        STRING    as in table `quality`
check        STRING    as in table `quality`
level        STRING    fail | warn
event_id     STRING    the row's id; null where it has none
event_time   TIMESTAMP the row's time; null where it has none
value        STRING    what did not pass: columns and their values
"""
    ),
    statistics=("date", "at"),
)
FORGOTTEN = Table(
    "forgotten",
    "events that were forgotten on request: none of their records is stored again, whenever they are read again",
    columns(
        """
stream     STRING    primary | foreign
event_id   STRING    the event's unique name; null of a bad record
event_time TIMESTAMP when the event happened; null of a bad record
bucket     STRING    range of event time that it lies in
digest     STRING    SHA-256 of a bad record's bytes, which has no id; else null
request    STRING    the request's name, as given by who ran it
at         TIMESTAMP when it was put on the list
"""
    ),
    statistics=("event_time", "at"),
)
