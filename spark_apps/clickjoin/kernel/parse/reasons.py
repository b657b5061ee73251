"""Why a record is quarantined: the closed list of reasons, and what to do about each."""

from __future__ import annotations

REASONS = {
    "broken-json": "the line is not one JSON object, or names a needed key twice; write one object a line",
    "not-an-object": "the line is JSON, but no object; write one object a line",
    "invalid-utf8": "the line is not UTF-8; let the producer write UTF-8",
    "nul-byte": "the line holds a NUL byte, as after a crash of the machine or a bad copy; write the record again",
    "too-long": "the record is longer than limits.max_record; raise that limit or shorten the record",
    "missing-id": "the event id is missing, null or empty; give every record an id",
    "wrong-type": "an id is no string or integer, or a time no text or number; write it as one",
    "id-too-long": "the event id is longer than 1024 bytes; shorten it",
    "no-time-in-id": "the event id does not hold its time in the configured form; fix the id or `event_time`",
    "bad-time": "the column of the event time is missing, empty or no time; write ISO 8601 or a number since 1970",
    "impossible-time": "a time is before limits.earliest or after now plus limits.max_skew; fix the clock",
    "bad-primary-id": "the primary event's id is missing, empty, too long, or its time cannot be derived; fix it",
    "bad-csv": "the line has another number of fields than the header, unbalanced quotes or a lone CR; fix the line",
    "tombstone": "the message has no value: it deletes its key in a compacted topic; write a value, or leave it",
    "empty-value": "the value of the message is empty; write a record",
    "wrong-value": "a value does not fit its column, and output.strict is set; fix the record, or output.columns",
    "settings-changed": "it was bad by limits or output.strict as they were before; export it as a new file",
    "broken-file": "the packed file ends early or is damaged; put the whole file back, it is then read again",
    "unclear-rewrite": "a version of a table rewrote rows whose former files are gone; those known count as repeats",
    "source-lost": "what was planned is in no file, table or topic any more; a file that is put back is read then",
}
