"""What the generator is fitted to, and where each number comes from.

"Table n", "Fig. n" and "section n" are those of Takizawa et al. on AAIC (IPSJ SIG Technical Report);
"log" is the log published with it (459,545 jobs), counted or fitted by us.
"""

from __future__ import annotations

CLASSES = ("single", "node", "multi")  # one GPU, several in a node, several nodes
STATES = ("completed", "failed", "timeout", "cancelled", "killed")
QUEUES = ("normal", "short", "middle", "long")
EXIT_CODES = (0, 1, None, None, 137)  # killed = SIGKILL; the scheduler's own ends have none

# Section 3 and Table 1: the machine, the period and the queues' limits (hours)
NUM_NODES = 38
GPUS_PER_NODE = 8
GPU_MODEL = "P100"
PERIOD_DAYS = 535.0
MAX_WALLTIME_H = {"normal": 72, "short": 3, "middle": 168, "long": 336}
ONE_NODE_QUEUES = ("short", "middle", "long")

# log: jobs of each class by state, in the order of STATES (Fig. 3: 83.2 % completed in all; with
# SHORT_SHARE this gives Fig. 6a's 96.2 / 3.3 / 0.5 % of the jobs that run for 60 s or more)
NUM_BY_STATE = {
    "single": (368290, 17653, 3587, 43013, 37),
    "node": (12709, 6442, 956, 3497, 56),
    "multi": (1241, 750, 423, 874, 17),
}
# log: share that ran for less than 60 s (section 5.1: 98,789 jobs, 21.5 %); a timeout ran its request
SHORT_SHARE = {
    "single": (0.1827, 0.8469, 0.0, 0.0751, 0.568),
    "node": (0.4434, 0.8875, 0.0, 0.1158, 0.875),
    "multi": (0.6205, 0.7027, 0.0, 0.1922, 0.99),
}
# log: run time of those, lognormal cut to 1–59 s: median (s) and sigma
SHORT_RUN = {
    "single": ((24, 0.9), (15, 0.95), (20, 1.0), (28, 0.55), (5, 0.9)),
    "node": ((13, 1.0), (8, 0.6), (20, 1.0), (36, 0.45), (38, 0.25)),
    "multi": ((18, 0.9), (23, 0.4), (20, 1.0), (50, 0.5), (12, 1.3)),
}
# log: run time from 60 s on, a mixture of lognormals cut to [60 s, LONGEST_H]: weight, median (s), sigma.
# Fitted to the quantiles and to Table 3 (mean, spread, median) and section 5.3 (≤ 3 h, ≥ 24 h).
LONG_RUN = {
    "single": {
        "completed": ((0.291, 339, 1.88), (0.149, 1363, 0.52), (0.438, 1978, 1.38), (0.122, 25205, 1.05)),
        "failed": ((0.849, 123, 1.65), (0.151, 55861, 1.05)),
        "cancelled": ((0.403, 401, 1.27), (0.291, 6080, 0.68), (0.307, 10283, 1.21)),
    },
    "node": {
        "completed": ((0.342, 232, 1.65), (0.294, 16581, 0.49), (0.363, 94535, 0.66)),
        "failed": ((0.656, 206, 1.58), (0.344, 21987, 1.23)),
        "cancelled": ((0.800, 232, 1.45), (0.200, 65855, 0.87)),
    },
    "multi": {
        "completed": ((0.535, 55, 0.50), (0.161, 467, 0.69), (0.303, 21157, 1.32)),
        "failed": ((0.875, 116, 0.35), (0.125, 953, 1.38)),
        "cancelled": ((0.784, 175, 1.17), (0.216, 3603, 3.00)),
    },
}  # fmt: skip
LONGEST_H = {"single": 336, "node": 336, "multi": 72}

# log: GPUs of jobs within a node (Fig. 6b) and nodes of larger ones (Fig. 6c), which take whole nodes:
# the number, jobs of ≥ 60 s, jobs of < 60 s
GPUS_IN_NODE = (
    (2, 1770, 5732), (3, 235, 725), (4, 4004, 1040), (5, 58, 134), (6, 38, 18), (7, 21, 125),
    (8, 5724, 4036),
)  # fmt: skip
NODES = (
    (2, 1505, 1306), (3, 16, 32), (4, 110, 48), (5, 6, 29), (8, 87, 17), (10, 9, 15), (16, 52, 15),
    (20, 0, 10), (32, 34, 7),
)  # fmt: skip

# log: queue and request by run time, jobs per thousand of the row (Fig. 2, Fig. 7a, section 5.2:
# 36.54 % ask for the queue's maximum). A column is the queue's first letter and hours; a row begins
# with the least run time (s). Requests are rounded to the nearest of the columns, never up to a maximum.
REQUESTS_SINGLE = """
 run_s n0.05 n0.167 n0.5 n1  n2 n3 n4  n6 n12 n24 n48 n60 n72 s0.05 s0.167 s1 s2  s3 m3 m15 m50 m72 m100 m144 m168 l72 l168 l240 l336
     0    11      5    4 30  64 25 20  30  97 350   4   4 123   156      2 15  3  49  1   0   1   4    0    1    1   1    0    0    0
    60     1      4    6 15 104 13 33  22  90 454   5   2  97    35      1  4 12  99  1   0   0   2    0    0    0   0    0    0    0
   180     0      2    1 22  32 24 50  15  71 640   1   2  77     0      0  2  6  51  0   0   0   2    0    0    1   0    0    0    0
   600     0      0    1  2   1 58 41  27 298 237   1   1 210     0      0  1  8 113  0   0   1   0    0    0    0   0    0    0    0
  1200     0      0    0  1  94 34 28  43 299 126   0   1 231     0      0  0  6 136  0   0   0   0    0    0    0   0    0    0    0
  1800     0      0    0  3   7 18  8  80 197 206   1   4 159     0      0  0 14 302  0   0   0   0    0    0    0   0    0    0    0
  3600     0      0    0  0   1  9  1 123 190 318   0   5 183     0      0  0  7 160  0   0   0   0    0    0    0   0    0    0    1
  7200     0      0    0  0   0 10  3  84 308 237   1  13 308     0      0  0  0  28  0   2   0   1    2    1    1   0    0    0    1
 10800     0      0    0  0   0  0  1  51 264 121   2  25 526     0      0  0  0   0  0   2   1   2    0    0    2   1    0    0    1
 21600     0      0    0  0   0  0  0   0  74 144   7   8 748     0      0  0  0   0  0   2   6   3    3    0    1   1    0    0    1
 43200     0      0    0  0   0  0  0   0   5 240  38  15 663     0      0  0  0   0  0   2  15   6    2    4    2   1    1    0    4
 86400     0      0    0  0   0  0  0   0   0   0  36  48 849     0      0  0  0   0  0   0   2  20    7    3   21   4    1    0    7
172800     0      0    0  0   0  0  0   0   0   0   1 100 799     0      0  0  0   0  0   0   0  25   24   14   26   3    1    1    6
259200     0      0    0  0   0  0  0   0   0   0   0   0  29     0      0  0  0   0  0   0   0   0   26  136  618   0   42   16  133
604800     0      0    0  0   0  0  0   0   0   0   0   0   0     0      0  0  0   0  0   0   0   0    0    0    0   0    0   33  967
"""  # noqa: E501
REQUESTS_WIDE = """
 run_s n0.05 n0.167 n0.5  n1  n2 n3 n4 n6 n12 n24 n48 n60 n72 l72 l168 l240 l336
     0    87     16   23 205   4  3  1  3  17  11  17   3 588  17    0    1    3
    60   182     25  102 200  59  9  1  9  41  42  60   2 243  20    3    1    3
   180     0     63  104  64 102  4  2 18  31 113  66   5 414   4    0    3    6
   600     0      0  120 198  51 44  7 28  76  76  60   9 313   4    0    2   12
  1200     0      0   37  88  72  0  8 37  42  50  29   3 613  19    0    0    3
  1800     0      0    9 187  78 11  0 16  62  78  60   4 463   2    4   13   11
  3600     0      0    0   0  41  7 34  7  92  59  17   2 705   8    3    3   22
  7200     0      0    0   0   0 24 17 28  79  62  14  24 728   7    0    3   14
 10800     0      0    0   0   0  0  5  4  30  37  18  16 883   1    1    3    2
 21600     0      0    0   0   0  0  0  0  32  40  50  25 845   5    0    2    2
 43200     0      0    0   0   0  0  0  0   6 101  41  32 783  13    7    4   14
 86400     0      0    0   0   0  0  0  0   0   0  60  38 852  10   13    1   26
172800     0      0    0   0   0  0  0  0   0   0   0   6 941  15   15    2   21
259200     0      0    0   0   0  0  0  0   0   0   0   0   0   0   90   30  881
604800     0      0    0   0   0  0  0  0   0   0   0   0   0   0    0   33  967
"""
# log: what jobs that timed out had asked for: queue and hours as above, and their number
TIMEOUT_REQUESTS = {
    "single": "n0.05 40 n0.167 30 n1 110 n2 100 n4 77 n5 40 n6 241 n12 548 n24 768 n48 237 n72 856 "
    "s0.05 139 s2 91 s3 176 m72 50 m168 34 l336 15",
    "node": "n0.083 50 n0.167 59 n0.5 36 n1 101 n2 13 n6 9 n12 13 n24 72 n48 57 n72 450 l72 40 l336 12",
    "multi": "n0.05 12 n0.083 276 n0.167 35 n0.25 5 n0.5 10 n1 15 n2 4 n4 12 n12 8 n24 14 n36 4 n72 4",
}

# log (Fig. 9): submissions by hour of the day and by weekday from Monday, per thousand
HOURS = (
    29.3, 25.4, 23.0, 20.8, 19.8, 17.2, 16.2, 15.5, 16.3, 32.7, 51.6, 59.8,
    49.0, 52.2, 59.6, 62.7, 63.9, 68.3, 81.0, 65.5, 47.9, 46.1, 38.1, 38.0,
)  # fmt: skip
WEEKDAYS = (167.0, 155.3, 198.7, 182.6, 159.0, 83.1, 54.2)
# spread (sigma of the log) of days around their weekday. The log's is larger, with quarters of ten times
# the jobs of others; with more than this the jobs would wait longer than the log's.
DAY_SIGMA = 0.3

# log: a burst is one user's jobs with at most 60 s between them. P(size ≥ s) = ((s + c) / (1 + c))^-a:
# 57 % have 2 and more, 11 % ten, 0.7 % a hundred. a, c, and the largest that we draw.
BURSTS = {"single": (1.25, 0.9, 1000), "node": (1.25, 0.0, 40), "multi": (1.9, 0.0, 10)}
# log: within bursts the spread of ln(run time) has median 0.29 and quartiles 0.09 and 0.53; in units of
# the class's own spread, as lognormal median and sigma
BURST_SPREAD = (0.16, 1.1)
# log: 4 % of jobs differ in state from the one before them in their burst
LONER_SHARE = 0.04
# log: seconds between a burst's jobs, lognormal median and sigma (half of the gaps are ≤ 1 s)
BURST_GAP = (1.0, 1.5)
LONGEST_GAP_S = 60.0
# log: of k users the i-th has a share ~ i^-1.5: the first has 41 % of 106 users' jobs (28–74 % a quarter)
ACTIVITY_EXPONENT = 1.5
# Fig. 5: some 15 active groups to 45 active users
USERS_A_GROUP = 3

# log: waits. The dispatcher takes 4 to 8 s (78 % of jobs wait no longer than 10 s); the later jobs of a
# large burst wait for the earlier ones, as a user gets this share of AAIC's machine. The other waits come
# from the load: a job begins when there is room.
DISPATCH_S = ((4, 0.22), (5, 0.33), (6, 0.25), (7, 0.14), (8, 0.06))
USER_LIMIT = {"single": 0.25, "node": 0.1, "multi": 0.1}
LONGEST_TURN_S = 2 * 86400
# GPU-hours of a burst a GPU of the machine (of AAIC's, if it is larger); more comes as several bursts. Ours:
# with it and the load of 0.5 the waits are the log's (78 % within 10 s, 11 % over an hour).
HEAVIEST_BURST_H = 1 / 3

# Telemetry is not in the log; these are ours, for a P100 of 16 GB (30–250 W).
MEMORY_MIB = 16280.0
IDLE_W, MAX_W = 30.0, 250.0
FIRST_GPU_ONLY_SHARE = 0.1  # of jobs with several GPUs: the others stay idle
MISSING_SHARE = 0.002  # single samples that were lost
OUTAGES_A_NODE_DAY = 0.2  # the exporter is silent for 5 to 90 minutes
