"""What logs call the canonical columns, units and states: data for the guess of a mapping.

Names are compared in lower case without spaces, signs and underscores; earlier ones are preferred.
"""

from __future__ import annotations


def _counts(*nouns: str) -> tuple[str, ...]:
    """`gpus`, `num_gpus`, `ngpus`, `gpu_num`, `gpu_count`, `total_gpus`, … of each noun."""
    before = ("num", "n", "total", "numberof", "number", "alloc", "allocated", "used")
    after = ("num", "count", "number", "total", "alloc", "数")
    return tuple(
        name
        for noun in nouns
        for name in (noun, *(b + noun for b in before), *(noun + a for a in after))
    )


COLUMNS: dict[str, tuple[str, ...]] = {
    "submitted_at": (
        *("submittedat", "submittime", "submissiontime", "timesubmit", "submittedtime"),
        *("submit", "submitted", "qsubtime", "createtime", "createdat", "ctime", "qtime"),
        *("queuedat", "arrivaltime", "投入日時", "投入時刻", "投入"),
    ),
    "eligible_at": ("eligibleat", "eligibletime", "timeeligible", "eligible", "etime"),
    "started_at": (
        *("startedat", "starttime", "timestart", "startedtime", "start", "started"),
        *("begintime", "begin", "開始日時", "開始時刻", "開始"),
    ),
    "ended_at": (
        *("endedat", "endtime", "timeend", "endedtime", "end", "ended", "finishtime"),
        *("finishedtime", "finishedat", "finish", "finished", "completiontime", "stoptime"),
        *("終了日時", "終了時刻", "終了"),
    ),
    "job_id": (
        *("jobid", "jobnumber", "jobno", "jobnum", "jid", "job", "id", "requestid"),
        *("ジョブid", "ジョブ番号"),
    ),
    "array_id": ("arrayid", "arrayjobid", "jobarrayid"),
    "user": (
        *("user", "username", "owner", "userid", "uid", "submitter", "login", "account名"),
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
        *("result", "termcode", "terminationstatus", "状態", "結果"),
    ),
    "exit_code": ("exitcode", "exitstatus", "exit", "returncode", "rc", "終了コード"),
    "num_nodes": (*_counts("nodes", "node", "hosts", "host"), "nodect", "ノード数"),
    "num_gpus": _counts("gpus", "gpu"),
    "gpu_model": ("gpumodel", "gputype", "gpuname", "accelerator"),
    "num_cpus": (
        *_counts("cpus", "cpu", "cores", "core", "slots", "processors", "procs"),
        "コア数",
    ),
    "memory_mib": (
        *("memory", "mem", "memorymib", "reqmem", "requestedmemory", "memoryrequested"),
        *("memrequested", "memreq", "memoryreq", "totalmemory", "ram", "メモリ"),
    ),
    "requested_s": (
        *("requesteds", "timelimit", "walltimelimit", "limit", "walltimereq", "reqwalltime"),
        *("walltimerequested", "requestedwalltime", "requestedtime", "timerequested", "reqtime"),
        *("timereq", "maxwalltime", "hrt", "timelimitraw", "制限時間", "要求時間"),
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
TASKS = ("tasknumber", "taskid", "arraytaskid", "taskno", "arrayindex")

# the last word of a column's name, as in `limit_h` or `Memory (GB)`
UNITS = {
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
    "pending": ("pending", "pd", "queued", "q", "qw", "waiting", "submitted", "held", "待機"),
    "running": ("running", "r", "run", "active", "started", "実行中"),
    "completed": (
        *("completed", "complete", "cd", "done", "success", "successful", "succeeded", "finished"),
        *("ok", "pass", "passed", "normal", "完了", "正常終了", "正常"),
    ),
    "failed": ("failed", "fail", "failure", "f", "error", "err", "crashed", "異常終了", "失敗"),
    "timeout": ("timeout", "to", "timed_out", "time_limit", "walltime", "deadline", "時間切れ"),
    "cancelled": (
        *("cancelled", "canceled", "cancel", "ca", "deleted", "aborted", "abort", "removed"),
        *("cancelled_by_user", "qdel", "キャンセル", "取消"),
    ),
    "killed": ("killed", "kill", "terminated", "強制終了"),
    "out_of_memory": ("out_of_memory", "oom", "oomkilled", "oom_killed", "outofmemory"),
    "node_failed": ("node_failed", "node_fail", "nf", "node_failure", "boot_fail", "node_down"),
    "preempted": ("preempted", "pr", "evicted", "preempt"),
}
