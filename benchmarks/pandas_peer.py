"""The registered analyses as a careful analyst writes them in pandas: the peer of benchmarks/analyses.py.

It computes what `hakaru show ID` computes on AAIC's log: vectorised throughout, and each table reads only the
columns of the CSV files that it needs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from benchmarks.pandas_log import ZONE, Log, local_time

LIMITS_H = {"normal": 72, "short": 3, "middle": 168, "long": 336}
PEER: dict[str, Callable[[Log], pd.DataFrame]] = {}


def peer(id: str) -> Callable[[Callable[[Log], pd.DataFrame]], Callable[[Log], pd.DataFrame]]:
    def register(function: Callable[[Log], pd.DataFrame]) -> Callable[[Log], pd.DataFrame]:
        PEER[id] = function
        return function

    return register


def long_enough(jobs: pd.DataFrame) -> pd.DataFrame:
    return jobs[jobs["run_s"] >= 60]


def successful(jobs: pd.DataFrame) -> pd.DataFrame:
    return jobs[(jobs["run_s"] >= 60) & (jobs["state"] == "completed")]


def shares(jobs: pd.DataFrame, by: str | list[str]) -> pd.DataFrame:
    groups = jobs.groupby(by, observed=True)
    table = groups.agg(num_jobs=("pe_hours", "size"), pe_hours=("pe_hours", "sum"))
    table["share"] = table["num_jobs"] / table["num_jobs"].sum()
    return table.reset_index()


@peer("queues")
def queues(log: Log) -> pd.DataFrame:
    jobs = log.jobs("queue", "requested_s", "num_nodes", "num_gpus", "pe_hours")
    table = shares(jobs, "queue").set_index("queue")
    most = jobs.groupby("queue", observed=True)[["requested_s", "num_nodes", "num_gpus"]].max()
    return table.join(most).sort_values("num_jobs", ascending=False)


@peer("states")
def states(log: Log) -> pd.DataFrame:
    return shares(log.jobs("state", "pe_hours"), "state").sort_values("num_jobs")


@peer("jobs-by-quarter")
def jobs_by_quarter(log: Log) -> pd.DataFrame:
    return shares(log.jobs("quarter", "pe_hours"), "quarter")


@peer("users-by-quarter")
def users_by_quarter(log: Log) -> pd.DataFrame:
    groups = log.jobs("quarter", "user", "account").groupby("quarter")
    return groups.agg(
        num_users=("user", "nunique"),
        num_accounts=("account", "nunique"),
        num_jobs=("user", "size"),
    )


@peer("parallelism")
def parallelism(log: Log) -> pd.DataFrame:
    return shares(long_enough(log.jobs("run_s", "parallelism", "pe_hours")), "parallelism")


def sizes(log: Log, parallelism: str) -> pd.DataFrame:
    chosen = long_enough(log.jobs("run_s", "parallelism", "num_gpus", "pe_hours"))
    return shares(chosen[chosen["parallelism"] == parallelism], "num_gpus")


@peer("gpus-single-node")
def gpus_single_node(log: Log) -> pd.DataFrame:
    return sizes(log, "single-node")


@peer("gpus-multi-node")
def gpus_multi_node(log: Log) -> pd.DataFrame:
    return sizes(log, "multi-node")


@peer("parallelism-by-quarter")
def parallelism_by_quarter(log: Log) -> pd.DataFrame:
    chosen = long_enough(log.jobs("run_s", "quarter", "parallelism", "pe_hours"))
    table = shares(chosen, ["quarter", "parallelism"])
    table["share"] = table["num_jobs"] / table.groupby("quarter")["num_jobs"].transform("sum")
    return table


def accuracy(jobs: pd.DataFrame, by: str | None) -> pd.DataFrame:
    chosen = successful(jobs)
    limits = chosen["queue"].map(LIMITS_H).astype(float) * 3600
    rated = pd.DataFrame(
        {
            "accuracy": chosen["run_s"] / chosen["requested_s"],
            "at_max": chosen["requested_s"] >= limits,
            "by": chosen[by] if by else "all",
        }
    )
    groups = rated.groupby("by")
    return groups["accuracy"].describe().join(groups["at_max"].mean())


@peer("request-accuracy")
def request_accuracy(log: Log) -> pd.DataFrame:
    return accuracy(log.jobs("run_s", "state", "requested_s", "queue"), None)


@peer("request-accuracy-by-quarter")
def request_accuracy_by_quarter(log: Log) -> pd.DataFrame:
    return accuracy(log.jobs("run_s", "state", "requested_s", "queue", "quarter"), "quarter")


@peer("walltime")
def walltime(log: Log) -> pd.DataFrame:
    chosen = successful(log.jobs("run_s", "state", "parallelism"))
    hours = chosen["run_s"] / 3600

    def summary(values: pd.Series) -> dict[str, float]:
        return {
            "num_jobs": len(values),
            "mean_h": values.mean(),
            "sd_h": values.std(),
            "median_h": values.median(),
            "min_h": values.min(),
            "max_h": values.max(),
            "share_short": (values <= 3).mean(),
            "share_long": (values >= 24).mean(),
        }

    groups = hours.groupby(chosen["parallelism"])
    rows = {"all": summary(hours)} | {str(name): summary(part) for name, part in groups}
    return pd.DataFrame.from_dict(rows, orient="index")


@peer("walltime-cdf")
def walltime_cdf(log: Log) -> pd.DataFrame:
    chosen = successful(log.jobs("run_s", "state", "parallelism"))
    step = np.ceil(np.log10(chosen["run_s"].clip(lower=1)) * 20).astype(int)
    counts = pd.crosstab(step, chosen["parallelism"])
    counts["all"] = counts.sum(axis=1)
    return counts.cumsum() / counts.sum()


@peer("size-vs-walltime")
def size_vs_walltime(log: Log) -> pd.DataFrame:
    chosen = successful(log.jobs("run_s", "state", "num_gpus"))[["num_gpus", "run_s"]]
    single, others = chosen[chosen["num_gpus"] == 1], chosen[chosen["num_gpus"] > 1]
    found = []
    for draw in range(100):
        drawn = [side.sample(2000, replace=True, random_state=draw) for side in (single, others)]
        sample = pd.concat(drawn)
        spearman = sample.corr(method="spearman").iloc[0, 1]
        found.append((spearman, np.log(sample).corr().iloc[0, 1]))
    table = pd.DataFrame(found, columns=["spearman", "pearson"])
    return table.quantile([0.025, 0.5, 0.975]).T.assign(mean=table.mean())


@peer("arrivals-by-hour")
def arrivals_by_hour(log: Log) -> pd.DataFrame:
    local = log.jobs("local")["local"]
    days = pd.date_range(local.min().normalize(), local.max().normalize())
    grid = pd.crosstab(local.dt.normalize(), local.dt.hour).reindex(days, fill_value=0)
    return grid.agg(["mean", "std", "max"]).T


@peer("arrivals-by-weekday")
def arrivals_by_weekday(log: Log) -> pd.DataFrame:
    days = log.jobs("local")["local"].dt.normalize().value_counts().sort_index()
    daily = days.reindex(pd.date_range(days.index.min(), days.index.max()), fill_value=0)
    return daily.groupby(daily.index.weekday).agg(["mean", "std", "max"])


def statistics_of(seconds: pd.Series) -> dict[str, float]:
    points = seconds.quantile([0.25, 0.5, 0.75, 0.9, 0.95, 0.99])
    known = {"num": seconds.count(), "mean_s": seconds.mean(), "sd_s": seconds.std()}
    return known | {f"p{100 * p:g}_s": value for p, value in points.items()}


@peer("waits")
def waits(log: Log) -> pd.DataFrame:
    wait_s = log.jobs("wait_s")["wait_s"]
    within = {f"within_{limit}": (wait_s <= limit).mean() for limit in (60, 3600)}
    return pd.DataFrame({"submit to start": statistics_of(wait_s) | within}).T


@peer("abandoned-waits")
def abandoned_waits(log: Log) -> pd.DataFrame:
    jobs = log.jobs("state", "submitted_s", "started_s", "ended_s", "wait_s")
    gone = jobs["ended_s"].notna() & jobs["state"].isin(["cancelled", "failed", "killed"])
    fate = np.where(jobs["started_s"].notna(), "started", np.where(gone, "abandoned", "pending"))
    return jobs["wait_s"].groupby(fate).describe(percentiles=[0.5, 0.9])


@peer("interarrivals")
def interarrivals(log: Log) -> pd.DataFrame:
    ordered = log.jobs("user", "submitted_s").sort_values("submitted_s")
    anyone = ordered["submitted_s"].diff()
    same = ordered.groupby("user")["submitted_s"].diff()
    return pd.DataFrame({"all": statistics_of(anyone), "same user": statistics_of(same)}).T


@peer("think-time")
def think_time(log: Log) -> pd.DataFrame:
    jobs = log.jobs("user", "submitted_s", "ended_s")
    ordered = jobs.sort_values(["user", "submitted_s", "ended_s"])
    pause = (ordered.groupby("user")["submitted_s"].shift(-1) - ordered["ended_s"]).dropna()
    return pd.DataFrame([statistics_of(pause[pause.between(0, 8 * 3600)])])


@peer("concentration")
def concentration(log: Log) -> pd.DataFrame:
    rows = {}
    for holder in ("user", "account"):
        amounts = np.sort(log.jobs(holder)[holder].value_counts().to_numpy())
        places = np.arange(1, len(amounts) + 1)
        gini = 2 * (places * amounts).sum() / (len(amounts) * amounts.sum())
        top = {f"top{n}": amounts[-n:].sum() / amounts.sum() for n in (1, 3, 10)}
        rows[holder] = {"gini": gini - (len(amounts) + 1) / len(amounts), **top}
    return pd.DataFrame(rows).T


@peer("users")
def users(log: Log) -> pd.DataFrame:
    return people(log, "user", "account")


@peer("accounts")
def accounts(log: Log) -> pd.DataFrame:
    return people(log, "account", "user")


def people(log: Log, holder: str, other: str) -> pd.DataFrame:
    columns = ("state", "pe_hours", "wait_s", "run_s", "requested_s", "submitted_s")
    jobs = log.jobs(holder, other, *columns).assign(num=1)
    jobs["accuracy"] = jobs["run_s"] / jobs["requested_s"].where(jobs["requested_s"] > 0)
    for state in ("completed", "failed", "timeout", "cancelled"):
        jobs[f"share_{state}"] = (jobs["state"] == state).astype(float)
    by = jobs.drop(columns="state").groupby(holder)
    shares = by[[name for name in jobs if str(name).startswith("share_")]].mean()
    quantiles = {
        f"{name}_p{p * 100:.0f}": by[name].quantile(p)
        for name, p in (("wait_s", 0.5), ("wait_s", 0.95), ("run_s", 0.5), ("accuracy", 0.5))
    }
    sums = {
        "num_jobs": by["num"].sum(),
        f"num_{other}s": by[other].nunique(),
        "pe_hours": by["pe_hours"].sum(),
        "first_submit": by["submitted_s"].min(),
        "last_submit": by["submitted_s"].max(),
    }
    table = pd.DataFrame(sums | quantiles).join(shares)
    return table.sort_values("pe_hours", ascending=False).head(100)


def level(begins: pd.Series, ends: pd.Series, amounts: pd.Series, edges: np.ndarray) -> np.ndarray:
    """Mean level in each bin of a step function that rises at `begins` and falls at `ends`."""
    moments = np.concatenate([begins, ends])
    changes = np.concatenate([amounts, -amounts])
    order = np.argsort(moments, kind="stable")
    moments, heights = moments[order], changes[order].cumsum()
    area = np.concatenate([[0.0], np.cumsum(heights[:-1] * np.diff(moments))])
    place = np.searchsorted(moments, edges, side="right") - 1
    inside = place.clip(min=0)
    upto = np.where(place < 0, 0, area[inside] + heights[inside] * (edges - moments[inside]))
    return np.diff(upto) / np.diff(edges)


def levels(jobs: pd.DataFrame, edges: np.ndarray) -> pd.DataFrame:
    submitted, started, ended = (jobs[name] for name in ("submitted_s", "started_s", "ended_s"))
    one, pes = pd.Series(1, index=jobs.index), jobs["num_gpus"]
    return pd.DataFrame(
        {
            "num_jobs_waiting": level(submitted, started, one, edges),
            "num_pes_waiting": level(submitted, started, pes, edges),
            "num_jobs_running": level(started, ended, one, edges),
            "num_pes_busy": level(started, ended, pes, edges),
        }
    )


@peer("load")
def load(log: Log) -> pd.DataFrame:
    jobs = log.jobs("submitted_s", "started_s", "ended_s", "num_gpus")
    return levels(jobs, np.linspace(jobs["submitted_s"].min(), jobs["ended_s"].max(), 270))


@peer("utilisation")
def utilisation(log: Log) -> pd.DataFrame:
    jobs = log.jobs("submitted_s", "started_s", "ended_s", "num_gpus")
    first, last = local_time(pd.Series([jobs["submitted_s"].min(), jobs["ended_s"].max()]))
    starts = pd.period_range(first, last, freq="Q").start_time.tz_localize(ZONE)
    edges = np.append(starts.as_unit("s").astype("int64"), jobs["ended_s"].max())
    table = levels(jobs, edges)
    table["busy_pe_hours"] = table["num_pes_busy"] * np.diff(edges) / 3600
    return table


@peer("arrivals-by-week")
def arrivals_by_week(log: Log) -> pd.DataFrame:
    local = log.jobs("local")["local"]
    days = pd.date_range(local.min().normalize(), local.max().normalize())
    counts = pd.crosstab(local.dt.weekday, local.dt.hour)
    return counts.div(pd.Series(days.weekday).value_counts(), axis=0)


@peer("job-shapes")
def job_shapes(log: Log) -> pd.DataFrame:
    jobs = log.jobs("num_nodes", "num_gpus", "wait_s", "run_s")
    strata = jobs.groupby(np.ceil(np.log2(jobs["num_nodes"])).astype(int))
    sizes = strata.size()
    part = np.minimum(sizes, 1000 // len(sizes))
    left = sizes - part
    quota = part + (1000 - part.sum()) * left // max(left.sum(), 1)
    return pd.concat([stratum.sample(quota[n], random_state=1) for n, stratum in strata])


@peer("walltime-by-application")
def walltime_by_application(log: Log) -> pd.DataFrame:
    """AAIC's log names no application, so that there is nothing to divide by."""
    jobs = log.jobs("run_s").assign(application=None).dropna(subset="application")
    step = np.ceil(np.log10(jobs["run_s"].clip(lower=1)) * 20).astype(int)
    counts = pd.crosstab(step, jobs["application"])
    return counts.cumsum() / counts.sum()


@peer("request-vs-run")
def request_vs_run(log: Log) -> pd.DataFrame:
    jobs = long_enough(log.jobs("run_s", "requested_s", "pe_hours"))
    jobs = jobs[jobs["requested_s"] > 0]
    requested, run = (
        np.ceil(np.log10(jobs[name].clip(lower=1)) * 8).astype(int)
        for name in ("requested_s", "run_s")
    )
    cells = jobs.groupby([requested, run])["pe_hours"].agg(["size", "sum"])
    return cells.assign(share=cells["size"] / cells["size"].sum())
