"""EASY backfilling: only the first job in the queue has a reservation."""

from hakaru.sim.policies._base import policy

EASY = policy(
    "easy",
    title="EASY backfilling",
    cites="Lifka 1995; Mu'alem and Feitelson 2001",
    backfill="easy",
)
EASY_SJBF = policy(
    "easy-sjbf",
    title="EASY backfilling that tries the shortest job first",
    cites="Tsafrir, Etsion and Feitelson 2007",
    backfill="easy",
    scan="shortest-first",
)
EASY_PLUS_PLUS = policy(
    "easy++",
    title="EASY++: shortest first, by the mean of the user's last two run times, corrected when passed",
    cites="Tsafrir, Etsion and Feitelson 2007",
    backfill="easy",
    scan="shortest-first",
    predictor="last-two",
)
