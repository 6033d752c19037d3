"""What logs call the canonical columns, units and states: data for the guess of a mapping.

Names are compared in lower case without spaces, signs and underscores; earlier ones are preferred.
"""

from __future__ import annotations

# Alone they may number a node or a device rather than count them.
SINGULAR = ("node", "host", "cpu", "core", "gpu")


def _counts(*nouns: str) -> tuple[str, ...]:
    """`gpus`, `num_gpus`, `gpu_count`, … of each noun; what was requested and `gpu` alone come last."""
    before = ("num", "n", "total", "numberof", "number", "alloc", "allocated", "used")
    after = ("num", "count", "number", "total", "alloc", "数")
    given = [
        name
        for noun in nouns
        for name in (noun, *(b + noun for b in before), *(noun + a for a in after))
        if name not in SINGULAR
    ]
    asked = (name for noun in nouns for name in _asked(noun))
    return (*given, *asked, *(noun for noun in nouns if noun in SINGULAR))


def _asked(noun: str) -> tuple[str, ...]:
    """`req_gpus`, `gpus_req`, `requested_gpus`, `num_gpus_requested`, … of a noun."""
    words = ("req", "requested", "request", "plan", "planned", "asked")
    counted = (f"num{noun}", f"n{noun}", noun)
    return tuple(name for c in counted for w in words for name in (w + c, c + w))


def _times(*verbs: str) -> tuple[str, ...]:
    """`submit_time`, `time_submit`, `submitted_at`, `submit_ts`, … of each verb, and the verbs alone."""
    after = (
        "at",
        "time",
        "date",
        "ts",
        "timestamp",
        "datetime",
        "epoch",
        "timeutc",
        "日時",
        "時刻",
    )
    return (
        *(verb + a for verb in verbs for a in after),
        *(before + verb for verb in verbs for before in ("time", "date", "timestamp", "jobtime")),
        *verbs,
    )


COLUMNS: dict[str, tuple[str, ...]] = {
    "submitted_at": (
        *_times("submitted", "submit", "submission", "qsub", "create", "created", "creation"),
        *_times("queued", "enqueue", "arrival", "arrive", "vmcreated", "投入"),
        *("ctime", "qtime", "gmtcreate", "gmtcreated", "gmtjobsubmitted"),
    ),
    "eligible_at": (*_times("eligible"), "etime"),
    "started_at": (
        *_times("started", "start", "begin", "began", "launch", "開始"),
        "gmtjobrunning",
    ),
    "ended_at": (
        *_times("ended", "end", "finish", "finished", "completion", "completed", "complete"),
        *_times("stop", "stopped", "terminated", "vmdeleted", "終了"),
        *("gmtjobfinished",),
    ),
    "job_id": (
        *("jobid", "jobidraw", "jobnumber", "jobno", "jobnum", "jid", "job", "vmid", "requestid"),
        *("collectionid", "taskid", "runid", "id", "task"),
        *("ジョブid", "ジョブ番号"),
    ),
    "array_id": ("arrayid", "arrayjobid", "jobarrayid"),
    "user": (
        *("user", "username", "owner", "userid", "uid", "submitter", "login", "account名"),
        *("useridhash", "userhash", "member", "subscriptionid", "logicaluser"),
        *("ユーザー", "ユーザ", "ユーザー名", "ユーザ名", "利用者"),
    ),
    "queue": (
        *("queue", "partition", "queuename", "qname", "jobclass", "class", "virtualcluster"),
        *("vc", "キュー"),
    ),
    "account": (
        *("account", "group", "groupname", "groupid", "gid", "project", "projectname", "team"),
        *("lab", "department", "dept", "tenant", "vc", "グループ", "研究室", "所属"),
    ),
    "qos": ("qos", "qualityofservice"),
    "name": ("name", "jobname", "title", "ジョブ名"),
    "application": ("application", "app", "framework", "software", "アプリケーション"),
    "modules": ("modules", "loadedmodules"),
    "state": (
        *("state", "status", "jobstate", "jobstatus", "finalstate", "finalstatus", "outcome"),
        *("result", "termcode", "terminationstatus", "newstatus", "newstate", "laststatus"),
        *(
            "laststate",
            "currentstate",
            "currentstatus",
            "exitreason",
            "event",
            "eventtype",
            "状態",
            "結果",
        ),
    ),
    "exit_code": ("exitcode", "exitstatus", "exit", "returncode", "rc", "終了コード"),
    "num_nodes": (*_counts("nodes", "node", "hosts", "host"), "nodect", "ノード数"),
    "num_gpus": _counts("gpus", "gpu"),
    "gpu_model": ("gpumodel", "gputype", "gpuname", "accelerator"),
    "num_cpus": (
        *_counts("cpus", "cpu", "cores", "core", "slots", "processors", "procs"),
        *("vmcorecount", "vmcores", "コア数"),
    ),
    "memory_mib": (
        *("memory", "mem", "memorymib", "totalmemory", "ram", *_asked("mem"), *_asked("memory")),
        *("vmmemory", "メモリ"),
    ),
    "requested_s": (
        *("requesteds", "timelimit", "walltimelimit", "limit", "timelimitraw", "maxwalltime"),
        *(name for noun in ("walltime", "time", "runtime", "duration") for name in _asked(noun)),
        *("hrt", "maxruntime", "制限時間", "要求時間"),
    ),
    "wait_s": (
        *("waits", "wait", "waittime", "waitingtime", "queuetime", "queuewait", "queuedelay"),
        *("queueingdelay", "pendingtime", "delay", "待ち時間"),
    ),
    "run_s": (
        *("runs", "runtime", "walltime", "elapsed", "elapsedtime", "elapsedraw", "duration"),
        *(
            "wallclock",
            "wallclocktime",
            "ruwallclock",
            "exectime",
            "jobduration",
            "実行時間",
            "run",
        ),
    ),
    "nodes": ("nodes", "nodelist", "hosts", "hostnames", "hostname", "exechost", "host", "node"),
    "gpu_ids": ("gpuids", "gpuindices", "gpuuuids"),
}
PER_NODE = {
    "num_gpus": ("gpuspernode", "gpupernode", "gpn"),
    "num_cpus": ("cpuspernode", "cpupernode", "ppn", "corespernode", "slotspernode"),
    "memory_mib": ("mempernode", "memorypernode"),
}
# what sets apart the rows that share one id: by its whole name, or by a word in it
TASKS = ("tasknumber", "taskid", "arraytaskid", "taskno", "arrayindex")
TASK_WORDS = (
    *("task", "array", "index", "idx", "attempt", "try", "retry", "restart", "step", "replica"),
    *("rank", "instance", "inst", "component", "part", "seq", "sequence"),
)
# units that a name has by its origin: TimelimitRaw of Slurm is in minutes
NAMED_UNITS = {"timelimitraw": "min", "elapsedraw": "s"}

# the last word of a column's name, as in `limit_h` or `Memory (GB)`
UNITS = {
    **dict.fromkeys(("ns", "nsec", "nanos", "nanoseconds"), "ns"),
    **dict.fromkeys(("us", "usec", "micros", "microseconds"), "us"),
    **dict.fromkeys(("ms", "msec", "millis", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "秒"), "s"),
    **dict.fromkeys(("min", "mins", "minute", "minutes", "分"), "min"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "時間"), "h"),
    **dict.fromkeys(("d", "day", "days", "日"), "d"),
    **dict.fromkeys(("b", "byte", "bytes"), "B"),
    **{f"{letter}b": f"{letter.upper()}B" for letter in "kmgt"},
    **{f"{letter}ib": f"{letter.upper()}iB" for letter in "kmgt"},
}

# in lower case, with spaces and hyphens as underscores
STATES: dict[str, tuple[str, ...]] = {
    "pending": (
        "pending",
        "pd",
        "queued",
        "q",
        "qw",
        "waiting",
        "submitted",
        "held",
        "待機",
        "待ち",
    ),
    "running": ("running", "r", "run", "active", "started", "実行中"),
    "completed": (
        *("completed", "complete", "cd", "done", "success", "successful", "succeeded", "finished"),
        *("finish", "ok", "pass", "passed", "normal", "完了", "正常終了", "正常"),
    ),
    "failed": (
        "failed",
        "fail",
        "failure",
        "f",
        "error",
        "err",
        "crashed",
        "exit",
        "異常終了",
        "失敗",
    ),
    "timeout": ("timeout", "to", "timed_out", "time_limit", "walltime", "deadline", "時間切れ"),
    "cancelled": (
        *("cancelled", "canceled", "cancel", "ca", "deleted", "aborted", "abort", "removed"),
        *("cancelled_by_user", "qdel", "キャンセル", "取消"),
    ),
    "killed": ("killed", "kill", "terminated", "強制終了"),
    "out_of_memory": ("out_of_memory", "oom", "oomkilled", "oom_killed", "outofmemory"),
    "node_failed": (
        "node_failed",
        "node_fail",
        "nf",
        "node_failure",
        "boot_fail",
        "node_down",
        "lost",
    ),
    "preempted": ("preempted", "pr", "evicted", "evict", "preempt"),
}
