"""How many GPUs jobs use (AAIC section 5.1)."""

from __future__ import annotations

from hakaru.analyses._base import HAS_SIZE, Rule, analysis
from hakaru.analyses._site import class_name, quarter_name
from hakaru.analyses.overview import SHARE

ON_ONE_NODE = Rule("with several GPUs on one node", "class_number = 2")
ON_SEVERAL_NODES = Rule("on several nodes", "class_number = 3")


@analysis(
    "parallelism",
    title="Jobs by parallelism",
    answers="Do people train on one GPU, several, or several nodes?",
    reproduces="AAIC Fig. 6a",
    figure="bars",
    weighted=True,
    rules=[HAS_SIZE],
    min_run_s=60,
)
def parallelism() -> str:
    """Jobs on a single GPU, on several GPUs of one node, and on several nodes."""
    return f"""
        SELECT grp, {class_name("class_number")} AS parallelism, count(*) AS num_jobs,
               sum(pe_hours) AS pe_hours, {SHARE}
        FROM jobs GROUP BY grp, class_number ORDER BY grp, class_number
    """


@analysis(
    "gpus-single-node",
    title="GPUs of single-node jobs",
    answers="How many GPUs of a node do multi-GPU jobs take?",
    reproduces="AAIC Fig. 6b",
    figure="bars",
    weighted=True,
    rules=[HAS_SIZE, ON_ONE_NODE],
    min_run_s=60,
)
def gpus_single_node() -> str:
    """Jobs on several GPUs of one node, by their number of GPUs."""
    return _by_size()


@analysis(
    "gpus-multi-node",
    title="GPUs of multi-node jobs",
    answers="How large are the jobs that span nodes?",
    reproduces="AAIC Fig. 6c",
    figure="bars",
    weighted=True,
    rules=[HAS_SIZE, ON_SEVERAL_NODES],
    min_run_s=60,
)
def gpus_multi_node() -> str:
    """Jobs on several nodes, by their number of GPUs in total."""
    return _by_size()


@analysis(
    "parallelism-by-quarter",
    title="Parallelism by quarter",
    answers="Does distributed training spread?",
    reproduces="AAIC Fig. 6d",
    figure="stacked-bars",
    weighted=True,
    rules=[HAS_SIZE],
    min_run_s=60,
)
def parallelism_by_quarter() -> str:
    """Jobs of each class of parallelism in each quarter, and the class' share of the quarter."""
    return f"""
        SELECT grp, {quarter_name("quarter_number")} AS quarter,
               {class_name("class_number")} AS parallelism, count(*) AS num_jobs,
               sum(pe_hours) AS pe_hours,
               sum(weight) / nullif(sum(sum(weight)) OVER (PARTITION BY grp, quarter_number), 0)
                   AS share
        FROM jobs GROUP BY grp, quarter_number, class_number
        ORDER BY grp, quarter_number, class_number
    """


def _by_size() -> str:
    return f"""
        SELECT grp, num_pes, count(*) AS num_jobs, sum(pe_hours) AS pe_hours, {SHARE}
        FROM jobs GROUP BY grp, num_pes ORDER BY grp, num_pes
    """
