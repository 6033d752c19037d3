"""How people submit: the time between submissions, the time to think, and how few submit most."""

from __future__ import annotations

from hakaru.analyses._base import HAS_USER, Param, analysis
from hakaru.analyses._counted import deviation, quantile, ranked

# Numbers stand for groups and users while submissions are put in order: half the work of names.
PEOPLE = """people AS (
            SELECT grp, submitter, submitter <> '' AS known, num_jobs,
                   dense_rank() OVER (ORDER BY grp) AS grp_id,
                   row_number() OVER (ORDER BY grp, submitter) AS user_id
            FROM (SELECT grp, coalesce(jobs.user, '') AS submitter, count(*) AS num_jobs
                  FROM jobs GROUP BY grp, coalesce(jobs.user, '')) AS named
        ),
        groups AS (SELECT DISTINCT grp, grp_id FROM people)"""


@analysis(
    "interarrivals",
    title="Time between submissions",
    answers="How far apart are submissions, and do users submit in bursts?",
    reproduces="Inter-arrival times as in the workload studies that AAIC cites (section 2, refs. 2 to 5)",
    figure="statistics",
)
def interarrivals() -> str:
    """Time between consecutive submissions in whole seconds: of anyone, and of the same user.

    A coefficient of variation above 1 is burstier than chance. Jobs without a known user are in the
    first row only. Grouped, a submission is followed by the next one of its own group.
    """
    # submissions of one second are one row to put in order: what they leave out are gaps of zero
    submissions = _of_people("known, unix_seconds(submitted_at) AS at_s")
    return f"""
        WITH {PEOPLE},
        seconds AS (SELECT DISTINCT grp_id, user_id, known, at_s FROM ({submissions}) AS submissions),
        gaps AS (
            SELECT 1 AS scope, grp_id, at_s - lag(at_s) OVER (
                PARTITION BY grp_id ORDER BY at_s) AS gap_s
            FROM (SELECT DISTINCT grp_id, at_s FROM seconds) AS anyones
            UNION ALL
            SELECT 2 AS scope, grp_id, at_s - lag(at_s) OVER (
                PARTITION BY user_id ORDER BY at_s) AS gap_s
            FROM (SELECT grp_id, user_id, at_s FROM seconds WHERE known) AS users
        ),
        apart AS (
            SELECT scope, grp_id, gap_s, count(gap_s) AS num, count(*) AS num_seconds
            FROM gaps GROUP BY scope, grp_id, gap_s
        ),
        scopes AS (
            SELECT scope, grp_id, sum(CASE WHEN scope = 1 OR known THEN num_jobs ELSE 0 END) AS num_jobs
            FROM people CROSS JOIN (SELECT explode(sequence(1, 2)) AS scope) AS both_scopes
            GROUP BY scope, grp_id
        ),
        counts AS (
            SELECT scope, grp_id, gap_s, num FROM apart
            UNION ALL
            SELECT scopes.scope, scopes.grp_id, 0 AS gap_s,
                   max(num_jobs) - coalesce(sum(num_seconds), 0) AS num
            FROM scopes LEFT JOIN apart
                 ON scopes.scope = apart.scope AND scopes.grp_id = apart.grp_id
            GROUP BY scopes.scope, scopes.grp_id
        )
        SELECT grp, CASE scope WHEN 1 THEN 'all' ELSE 'same user' END AS submissions,
               sum(num) AS num_gaps, max(mean_value) AS mean_s, {deviation("gap_s")} AS sd_s,
               {deviation("gap_s")} / nullif(max(mean_value), 0) AS cv,
               {quantile("gap_s", 0.25)} AS p25_s, {quantile("gap_s", 0.5)} AS median_s,
               {quantile("gap_s", 0.75)} AS p75_s, {quantile("gap_s", 0.9)} AS p90_s,
               sum(CASE WHEN gap_s = 0 THEN num ELSE 0 END) / nullif(sum(num), 0) AS share_zero
        FROM ({ranked("counts", "grp_id, scope", "gap_s")}) AS ranked
        JOIN groups ON ranked.grp_id = groups.grp_id
        GROUP BY grp, scope ORDER BY grp, scope
    """


@analysis(
    "think-time",
    title="Think time",
    answers="After a job ends, how soon does its user submit the next one?",
    reproduces="Think time as Schlagkamp et al. define it (HPDC 2016; AAIC's ref. 6)",
    figure="statistics",
    rules=[HAS_USER],
    params=[Param("max_h", 8.0, "Longer pauses, in hours, are a night's rest and not thought.")],
)
def think_time(max_h: float) -> str:
    """From the end of a job to the same user's next submission, in whole seconds.

    A pair overlaps where the next job is submitted before the first ends; the statistics are those of
    the pauses from 0 to `max_h`. Of jobs that a user submits in one second, the one that ends last
    comes last. A job whose end is unknown begins no pair. Grouped, the next job is the next of its group.
    """
    submissions = _of_people(
        "unix_seconds(submitted_at) AS submitted_s, unix_seconds(ended_at) AS ended_s"
    )
    most_s = int(max_h * 3600)
    within = f"CASE WHEN pause_s BETWEEN 0 AND {most_s} THEN pause_s END"
    return f"""
        WITH {PEOPLE},
        pairs AS (
            SELECT grp_id, lead(submitted_s) OVER (
                PARTITION BY user_id ORDER BY submitted_s, ended_s NULLS LAST) - ended_s AS pause_s
            FROM ({submissions}) AS submissions
        ),
        counts AS (
            SELECT grp_id, {within} AS think_s, count({within}) AS num, count(pause_s) AS num_pairs,
                   count(CASE WHEN pause_s < 0 THEN 1 END) AS num_overlapping,
                   count(CASE WHEN pause_s > {most_s} THEN 1 END) AS num_longer
            FROM pairs GROUP BY grp_id, {within}
        )
        SELECT grp, sum(num_pairs) AS num_pairs, sum(num) AS num_within,
               sum(num_overlapping) / nullif(sum(num_pairs), 0) AS share_overlapping,
               sum(num) / nullif(sum(num_pairs), 0) AS share_within,
               sum(num_longer) / nullif(sum(num_pairs), 0) AS share_longer,
               max(mean_value) AS mean_s, {deviation("think_s")} AS sd_s,
               {quantile("think_s", 0.25)} AS p25_s, {quantile("think_s", 0.5)} AS median_s,
               {quantile("think_s", 0.75)} AS p75_s, {quantile("think_s", 0.9)} AS p90_s
        FROM ({ranked("counts", "grp_id", "think_s")}) AS ranked
        JOIN groups ON ranked.grp_id = groups.grp_id
        GROUP BY grp ORDER BY grp
    """


@analysis(
    "concentration",
    title="Concentration on few users",
    answers="How much of the machine do the few heaviest users and accounts take?",
    reproduces="Users' shares as in the workload studies that AAIC cites (section 2, refs. 2 to 5)",
    figure="shares",
    weighted=True,
)
def concentration() -> str:
    """Shares of the top users and accounts, and the Gini coefficient (0 all alike, near 1 one takes all).

    Jobs or GPU-hours, as chosen. Shares are of what has a known user (account); `share_unknown` is
    the rest. Where none is named, their number is unknown. A log that renumbers its users in every file
    (AAIC) is to be grouped by quarter.
    """
    known = "sum(CASE WHEN holder IS NOT NULL THEN amount END)"

    def share(top: str) -> str:
        taken = f"sum(CASE WHEN holder IS NOT NULL AND place <= {top} THEN amount END)"
        return f"{taken} / nullif({known}, 0)"

    return f"""
        WITH scopes AS (SELECT explode(sequence(1, 2)) AS scope),
        held AS (
            SELECT grp, scope, weight, CASE scope WHEN 1 THEN jobs.user ELSE account END AS holder
            FROM jobs CROSS JOIN scopes
        ),
        totals AS (
            SELECT grp, scope, holder, sum(weight) AS amount FROM held GROUP BY grp, scope, holder
        ),
        placed AS (
            SELECT totals.*, count(holder) OVER (PARTITION BY grp, scope) AS num_all,
                   row_number() OVER (PARTITION BY grp, scope ORDER BY
                       CASE WHEN holder IS NULL THEN 1 ELSE 0 END, amount DESC) AS place
            FROM totals
        )
        SELECT grp, CASE scope WHEN 1 THEN 'user' ELSE 'account' END AS holder,
               nullif(count(holder), 0) AS num_holders, sum(amount) AS total_weight,
               {share("1")} AS share_top1, {share("3")} AS share_top3,
               {share("10")} AS share_top10, {share("ceil(num_all / 10)")} AS share_top_tenth,
               2 * sum(CASE WHEN holder IS NOT NULL THEN (num_all + 1 - place) * amount END)
                   / nullif(max(num_all) * {known}, 0)
                   - (max(num_all) + 1) / nullif(max(num_all), 0) AS gini,
               sum(CASE WHEN holder IS NULL THEN amount ELSE 0 END) / nullif(sum(amount), 0)
                   AS share_unknown
        FROM placed GROUP BY grp, scope ORDER BY grp, scope
    """


def _of_people(columns: str) -> str:
    return f"""
                SELECT grp_id, user_id, {columns}
                FROM jobs JOIN people ON jobs.grp = people.grp
                     AND coalesce(jobs.user, '') = people.submitter
            """
