"""Clusters and published figures side by side, as data; nothing here prints.

`compare(session, clusters, metrics, published, selection) -> Comparison` computes; `metrics` come from
`hakaru.reference.metrics.find_metrics(HEADLINE)` (or `()` for all), `published` is a list of clusters from
`find_clusters([...])`, or None for all that have a metric. A `Comparison` has a `Line` a metric: its `cells`
(a value, or null with the reason) by cluster, and its `published` figures, each with source and place.

`to_document` gives it as plain data (the JSON of the command line and of the API), `to_csv` as one row a
number, `to_markdown` as a page. `contrasts` tells in sentences what sets the first cluster apart;
`shown` writes a number as a person reads it. `Notes` numbers the citations and letters the reasons of what
`column_names`, `cells_of`, `published_of`, `label_of` and `sentences` put into a table of one's own, and
`jobs_counted` says how many jobs the rules left out. `period_of` tells when a cluster's jobs were submitted.

`users_note` and `notes_on_users` say what must stand beside a count of users, where a log numbers them
anew in every file: nobody can be counted over such files.
"""

from hakaru.comparison._citations import Notes, short
from hakaru.comparison._compare import HEADLINE, Comparison, Line, compare
from hakaru.comparison._contrast import Contrast, contrasts, scaling, shown, shown_published
from hakaru.comparison._document import to_csv, to_document, to_markdown
from hakaru.comparison._period import period_of
from hakaru.comparison._texts import (
    cells_of,
    column_names,
    jobs_counted,
    label_of,
    published_of,
    sentences,
)
from hakaru.comparison._users import COUNT_USERS, notes_on_users, users_note

__all__ = [
    "COUNT_USERS",
    "HEADLINE",
    "Comparison",
    "Contrast",
    "Line",
    "Notes",
    "cells_of",
    "column_names",
    "compare",
    "contrasts",
    "jobs_counted",
    "label_of",
    "notes_on_users",
    "period_of",
    "published_of",
    "scaling",
    "sentences",
    "short",
    "shown",
    "shown_published",
    "to_csv",
    "to_document",
    "to_markdown",
    "users_note",
]
