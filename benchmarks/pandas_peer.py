"""The registered analyses as a careful analyst writes them in pandas: the peer of benchmarks/analyses.py.

It computes what `hakaru show ID` computes on AAIC's log: vectorised throughout, each derived column made
once and shared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

ZONE = "Asia/Tokyo"
LIMITS_H = {"normal": 72, "short": 3, "middle": 168, "long": 336}
NUM_PES = 38 * 8
COLUMNS = [
    "job_id", "user", "account", "queue", "state", "num_nodes", "num_gpus", "requested_s",
    "submitted_at", "eligible_at", "started_at", "ended_at", "wait_s", "run_s",
]  # fmt: skip

PEER: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {}


def read(files: Sequence[str]) -> pd.DataFrame:
    jobs = pd.concat([pd.read_parquet(file, columns=COLUMNS) for file in files])
    jobs["pe_hours"] = jobs["num_gpus"] * jobs["run_s"] / 3600
    jobs["local"] = jobs["submitted_at"].dt.tz_convert(ZONE).dt.tz_localize(None)
    jobs["quarter"] = jobs["local"].dt.to_period("Q").astype(str)
    several = np.where(jobs["num_nodes"] > 1, "multi-node", "single-node")
    jobs["parallelism"] = np.where(jobs["num_gpus"] == 1, "single-pe", several)
    return jobs


def peer(id: str) -> Callable[[Callable[..., pd.DataFrame]], Callable[..., pd.DataFrame]]:
    def register(function: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
        PEER[id] = function
        return function

    return register


def long_enough(jobs: pd.DataFrame) -> pd.DataFrame:
    return jobs[jobs["run_s"] >= 60]


def successful(jobs: pd.DataFrame) -> pd.DataFrame:
    return jobs[(jobs["run_s"] >= 60) & (jobs["state"] == "completed")]


def shares(jobs: pd.DataFrame, by: str | list[str]) -> pd.DataFrame:
    table = jobs.groupby(by).agg(num_jobs=("run_s", "size"), pe_hours=("pe_hours", "sum"))
    table["share"] = table["num_jobs"] / table["num_jobs"].sum()
    return table.reset_index()


@peer("queues")
def queues(jobs: pd.DataFrame) -> pd.DataFrame:
    table = shares(jobs, "queue").set_index("queue")
    most = jobs.groupby("queue").agg(
        max_requested_h=("requested_s", "max"),
        max_nodes=("num_nodes", "max"),
        max_pes=("num_gpus", "max"),
    )
    return table.join(most).sort_values("num_jobs", ascending=False)


@peer("states")
def states(jobs: pd.DataFrame) -> pd.DataFrame:
    return shares(jobs, "state").sort_values("num_jobs", ascending=False)


@peer("jobs-by-quarter")
def jobs_by_quarter(jobs: pd.DataFrame) -> pd.DataFrame:
    return shares(jobs, "quarter")


@peer("users-by-quarter")
def users_by_quarter(jobs: pd.DataFrame) -> pd.DataFrame:
    return jobs.groupby("quarter").agg(
        num_users=("user", "nunique"),
        num_accounts=("account", "nunique"),
        num_jobs=("user", "size"),
    )


@peer("parallelism")
def parallelism(jobs: pd.DataFrame) -> pd.DataFrame:
    return shares(long_enough(jobs), "parallelism")


@peer("gpus-single-node")
def gpus_single_node(jobs: pd.DataFrame) -> pd.DataFrame:
    chosen = long_enough(jobs)
    return shares(chosen[chosen["parallelism"] == "single-node"], "num_gpus")


@peer("gpus-multi-node")
def gpus_multi_node(jobs: pd.DataFrame) -> pd.DataFrame:
    chosen = long_enough(jobs)
    return shares(chosen[chosen["parallelism"] == "multi-node"], "num_gpus")


@peer("parallelism-by-quarter")
def parallelism_by_quarter(jobs: pd.DataFrame) -> pd.DataFrame:
    table = shares(long_enough(jobs), ["quarter", "parallelism"])
    table["share"] = table["num_jobs"] / table.groupby("quarter")["num_jobs"].transform("sum")
    return table


def accuracy_of(jobs: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    chosen = successful(jobs)
    rated = pd.DataFrame(
        {
            "accuracy": chosen["run_s"] / chosen["requested_s"],
            "at_max": chosen["requested_s"] >= chosen["queue"].map(LIMITS_H) * 3600,
            "quarter": chosen["quarter"],
            "all": "all",
        }
    )
    groups = rated.groupby(by)
    return groups["accuracy"].describe().join(groups["at_max"].mean())


@peer("request-accuracy")
def request_accuracy(jobs: pd.DataFrame) -> pd.DataFrame:
    return accuracy_of(jobs, ["all"])


@peer("request-accuracy-by-quarter")
def request_accuracy_by_quarter(jobs: pd.DataFrame) -> pd.DataFrame:
    return accuracy_of(jobs, ["quarter"])


@peer("walltime")
def walltime(jobs: pd.DataFrame) -> pd.DataFrame:
    chosen = successful(jobs)
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
def walltime_cdf(jobs: pd.DataFrame) -> pd.DataFrame:
    chosen = successful(jobs)
    step = np.ceil(np.log10(chosen["run_s"].clip(lower=1)) * 20).astype(int)
    both = pd.concat([chosen["parallelism"], pd.Series("all", index=chosen.index)])
    counts = pd.crosstab(pd.concat([step, step]).to_numpy(), both.to_numpy())
    return counts.cumsum() / counts.sum()


@peer("size-vs-walltime")
def size_vs_walltime(jobs: pd.DataFrame) -> pd.DataFrame:
    chosen = successful(jobs)[["num_gpus", "run_s"]]
    single = chosen[chosen["num_gpus"] == 1]
    others = chosen[chosen["num_gpus"] > 1]
    found = []
    for draw in range(100):
        sample = pd.concat(
            [single.sample(2000, random_state=draw), others.sample(2000, random_state=draw)]
        )
        spearman = sample.corr(method="spearman").iloc[0, 1]
        found.append((spearman, np.log(sample).corr().iloc[0, 1]))
    table = pd.DataFrame(found, columns=["spearman", "pearson"])
    return table.quantile([0.025, 0.5, 0.975]).T.assign(mean=table.mean())


def arrivals(local: pd.Series) -> pd.DataFrame:
    days = pd.date_range(local.min().normalize(), local.max().normalize())
    return pd.crosstab(local.dt.normalize(), local.dt.hour).reindex(days, fill_value=0)


@peer("arrivals-by-hour")
def arrivals_by_hour(jobs: pd.DataFrame) -> pd.DataFrame:
    return arrivals(jobs["local"]).agg(["mean", "std", "max"]).T


@peer("arrivals-by-weekday")
def arrivals_by_weekday(jobs: pd.DataFrame) -> pd.DataFrame:
    days = jobs["local"].dt.normalize().value_counts().sort_index()
    daily = days.reindex(pd.date_range(days.index.min(), days.index.max()), fill_value=0)
    return daily.groupby(daily.index.weekday).agg(["mean", "std", "max"])


def statistics_of(seconds: pd.Series) -> dict[str, float]:
    points = seconds.quantile([0.25, 0.5, 0.75, 0.9, 0.95, 0.99])
    known = {"num": seconds.count(), "mean_s": seconds.mean(), "sd_s": seconds.std()}
    return known | {f"p{100 * p:g}_s": value for p, value in points.items()}


def seconds_of(times: pd.Series) -> pd.Series:
    return times.astype("int64") / 1e6


@peer("waits")
def waits(jobs: pd.DataFrame) -> pd.DataFrame:
    held = (jobs["eligible_at"] - jobs["submitted_at"]).dt.total_seconds()
    queued = (jobs["started_at"] - jobs["eligible_at"]).dt.total_seconds()
    parts = {
        "submit to eligible": held,
        "eligible to start": queued,
        "submit to start": jobs["wait_s"],
    }
    return pd.DataFrame({name: statistics_of(part) for name, part in parts.items()}).T


@peer("abandoned-waits")
def abandoned_waits(jobs: pd.DataFrame) -> pd.DataFrame:
    gone = jobs["ended_at"].notna() & jobs["state"].isin(["cancelled", "failed", "killed"])
    fate = np.where(jobs["started_at"].notna(), "started", np.where(gone, "abandoned", "pending"))
    waited = (jobs["started_at"].fillna(jobs["ended_at"]) - jobs["submitted_at"]).dt.total_seconds()
    return waited.groupby(fate).describe(percentiles=[0.5, 0.9])


@peer("interarrivals")
def interarrivals(jobs: pd.DataFrame) -> pd.DataFrame:
    ordered = jobs[["user", "submitted_at"]].sort_values("submitted_at")
    anyone = ordered["submitted_at"].diff().dt.total_seconds()
    same = ordered.groupby("user")["submitted_at"].diff().dt.total_seconds()
    return pd.DataFrame({"all": statistics_of(anyone), "same user": statistics_of(same)}).T


@peer("think-time")
def think_time(jobs: pd.DataFrame) -> pd.DataFrame:
    ordered = jobs[["user", "submitted_at", "ended_at"]].sort_values(
        ["user", "submitted_at", "ended_at"]
    )
    pause = ordered.groupby("user")["submitted_at"].shift(-1) - ordered["ended_at"]
    seconds = pause.dt.total_seconds().dropna()
    return pd.DataFrame([statistics_of(seconds[seconds.between(0, 8 * 3600)])])


@peer("concentration")
def concentration(jobs: pd.DataFrame) -> pd.DataFrame:
    rows = {}
    for holder in ("user", "account"):
        amounts = np.sort(jobs[holder].value_counts().to_numpy())
        places = np.arange(1, len(amounts) + 1)
        gini = 2 * (places * amounts).sum() / (len(amounts) * amounts.sum())
        top = {f"top{n}": amounts[-n:].sum() / amounts.sum() for n in (1, 3, 10)}
        rows[holder] = {"gini": gini - (len(amounts) + 1) / len(amounts), **top}
    return pd.DataFrame(rows).T


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
    submitted, started, ended = (
        seconds_of(jobs[name]) for name in ("submitted_at", "started_at", "ended_at")
    )
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
def load(jobs: pd.DataFrame) -> pd.DataFrame:
    first, last = seconds_of(jobs["submitted_at"]).min(), seconds_of(jobs["ended_at"]).max()
    table = levels(jobs, np.linspace(first, last, 270))
    table["utilisation"] = table["num_pes_busy"] / NUM_PES
    return table


@peer("utilisation")
def utilisation(jobs: pd.DataFrame) -> pd.DataFrame:
    starts = pd.period_range(jobs["local"].min(), jobs["local"].max(), freq="Q").start_time
    moments = starts.tz_localize(ZONE).as_unit("us").astype("int64") / 1e6
    edges = np.append(moments, seconds_of(jobs["ended_at"]).max())
    return levels(jobs, edges) / NUM_PES
