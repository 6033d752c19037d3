"""Lines of launchers, MPI, NCCL and shells that tell of a lost rank: found everywhere, others nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.measure.imports import Imported, read_file
from hakaru.measure.imports._crashes import crash
from hakaru.measure.verdict import Verdict, worst
from tests.measure.hpl._xhpl import page, result

DATA = Path(__file__).parent / "data"
NCCL = (DATA / "nccl-new.txt").read_text()
RUN = {"n": 2000, "nb": 80, "p": 1, "q": 2, "pmap": 0, "depth": 1, "bcast": 1, "rfact": 1, "ndiv": 2,
       "pfact": 2, "nbmin": 4}  # fmt: skip
HPL = page([result(RUN, 60.0)])
LINES = [
    "srun: error: n2: task 1: Killed",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been",
    "slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-02-26T12:00:00 DUE TO NODE n2 FAILURE ***",
    "mpirun noticed that process rank 1 with PID 12 on node n2 exited on signal 9 (Killed).",
    "mpirun has exited due to process rank 3 with PID 12 on",
    "node n2 exiting improperly. There are three reasons this could occur:",
    "[n2:12] Signal: Segmentation fault (11)",
    "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD",
    "= BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    "ORTE has lost communication with a remote daemon.",
    "PRTE has lost communication with a remote daemon.",
    "Abort(336210451) on node 3 (rank 3 in comm 0): Fatal error in PMPI_Recv: Other MPI error",
    "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0",
    "[n1:12] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,",
    "[n1:12] PMIX ERROR: UNREACHABLE in file server/pmix_server.c at line 2147",
    "[n1][[1,1],0][btl_tcp.c:559:mca_btl_tcp_recv_blocking] recv(24) failed: Connection reset by peer",
    "=>> PBS: job killed: walltime 3600 exceeded limit 3600",
    "x1000c0s0b0n0.hostmgmt: rank 3 died from signal 9",
    "x1000c0s0b0n0.hostmgmt: rank 3 exited with code 139",
    "x1000c0s0b0n0.hostmgmt: rank 3 exited with code -1",
    "mpiexec: rank 3 was terminated with signal 9",
    "MPI process (rank: 3, pid: 77) terminated with signal 9 on host n2",
    "flux-job: task(s) exited with exit code 137",
    "task 3 exited with status 1",
    "srun: job step 77.0: task 3: Exited with exit code 1",
    "rank 3: killed by signal 11",
    "KILLED BY SIGNAL: 9 (Killed)",
    "Memory access fault by GPU node-4 (Agent handle: 0x1) on address 0x7f. Reason: Unknown.",
    "NVRM: Xid (PCI:0000:07:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "terminate called after throwing an instance of 'std::runtime_error'",
    "terminate called without an active exception",
    "[n1:00411] *** An error occurred in MPI_Recv",
]
HARMLESS = [
    "# nccl-tests version 2.17.6 nccl-headers=22703 nccl-library=22703",
    "node07:411:411 [0] NCCL INFO socket.cc:9 Call to recv from n2<45> failed : Connection reset by peer",
    "node07:411:411 [0] NCCL INFO comm 0x1 rank 0 nranks 4 - Abort COMPLETE",
    "node07:411:411 [0] proxy.cc:1458 NCCL WARN [Service thread] Accept failed Resource busy",
    "+ srun --kill-on-bad-exit=1 --mpi=pmix mpirun --mca orte_abort_on_non_zero_status 1",
    "[n1:12] PMIX ERROR: NO-PERMISSIONS in file gds_dstore.c at line 702",
    "              0 tests completed and failed residual checks,",
    "MPIRandomAccess_Errors=0",
    "0 failed, 8 passed",
    "x1000c0s0b0n0.hostmgmt: rank 3 exited with code 0",
    "flux-job: task(s) exited with exit code 0",
    "rank 3 exited with code: 0.",
    "rank 3 exited with status=0, signal 0",
    "NVRM: Xid (PCI:0000:07:00): 63, pid=77, Row Remapper: New row marked for remapping",
]


def read(tmp_path: Path, text: str, format: str | None = None) -> Imported:
    path = tmp_path / "job-77.out"
    path.write_text(text)
    return read_file(path, format, host="n1")


def verdict(found: Imported) -> Verdict:
    return worst(each.verdict for each in found.measurements)


@pytest.mark.parametrize("line", LINES)
def test_a_lost_rank_is_found_in_every_program_s_output(tmp_path: Path, line: str) -> None:
    for text in (NCCL, HPL):
        for crashed in (f"{line}\n{text}", f"{text}\n{line}\n", f"{text}\n# {line}\n"):
            found = read(tmp_path, crashed)
            assert verdict(found) is Verdict.FAILED, crashed
            assert any(line[:60].strip() in each.reason for each in found.measurements)


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless_lines_are_no_crash(tmp_path: Path, line: str) -> None:
    assert crash(line) == ""
    assert verdict(read(tmp_path, f"{line}\n{HPL}{line}\n", "hpl")) is Verdict.GOOD


def test_a_crash_far_in_a_long_line_is_found_and_shown(tmp_path: Path) -> None:
    for length in (300, 3_980, 3_990, 4_000, 4_010, 90_000):
        line = "." * length + " " + LINES[3]
        assert "…" in crash(line) and "noticed that process rank 1" in crash(line), length
        assert verdict(read(tmp_path, f"{NCCL}{line}\n")) is Verdict.FAILED
        assert verdict(read(tmp_path, f"{HPL}{line}\n")) is Verdict.FAILED


def test_the_crash_is_the_first_reason_of_a_run_of_hpl_that_was_cut_off(tmp_path: Path) -> None:
    cut = HPL[: HPL.index("Finished")]
    found = read(tmp_path, f"{cut}{LINES[0]}\n")
    reason = found.measurements[-1].reason
    assert reason.index("task 1: Killed") < reason.index("no 'End of Tests.'")


def test_a_line_on_memory_is_given_once(tmp_path: Path) -> None:
    reason = (
        read(tmp_path, f"{HPL}srun: error: n2: task 1: Out Of Memory\n").measurements[-1].reason
    )
    assert reason.count("Out Of Memory") == 1


@pytest.mark.parametrize(
    "line",
    [
        "mpirun noticed that process rank 1 with PID 1 on node n1 exited on signal 9 (Killed).",
        "node08:412:430 *** Process received signal *** Signal: Segmentation fault (11)",
        "run.sh: line 3:   411 Aborted                 (core dumped) ./build/all_reduce_perf -b 8",
        "srun: error: node08: task 3: Out Of Memory",
        "[1,0]<stdout>:node07:411:2 [0] NCCL WARN NET/IB : Got completion with error 12, opcode 0",
        "node07:411:2 [0] NCCL WARN NET/IB: Got completion from peer with status=WR_FLUSH(5)",
        "node07:411:411 [0] init.cc:9 NCCL WARN Cuda failure 2 'initialization'",
        "RuntimeError: NCCL: unhandled system error",
    ],
)
@pytest.mark.parametrize(
    "at", ["node07:411:411 [0] NCCL INFO comm", "# Out of", "# Collective test concluded", ""]
)
def test_a_crash_fails_wherever_it_is_printed(tmp_path: Path, line: str, at: str) -> None:
    text = NCCL.replace(at, f"{line}\n{at}") if at else f"{NCCL}{line}\n"
    found = read(tmp_path, text)
    assert {each.verdict for each in found.measurements} == {Verdict.FAILED}
    assert " ".join(line.rpartition(">:")[2].split()) in found.measurements[0].reason


@pytest.mark.parametrize(
    "line",
    [
        "node07:411:411 [0] NCCL INFO NET/Plugin: error while loading libnccl-net.so, using internal",
        "node07:411:411 [0] misc/cudawrap.cc:36 NCCL INFO Cuda failure 'API not supported'",
        "node07:411:411 [0] proxy.cc:1458 NCCL WARN [Service thread] Accept failed Resource busy",
        "# Bitwise mismatches   : 0 OK",
        "Authorization required, but no authorization protocol specified",
        "# Reducing maxBytes to 16777216 due to memory limitation",
    ],
)
def test_harmless_lines_of_nccl_do_not_fail(tmp_path: Path, line: str) -> None:
    found = read(tmp_path, NCCL.replace("# Out of", f"{line}\n# Out of") + line)
    assert {each.verdict for each in found.measurements} == {Verdict.GOOD}


def test_a_test_that_crashes_before_its_table_is_not_forgotten(tmp_path: Path) -> None:
    crashed = "$ mpirun ./build/all_gather_perf -b 8\nn1: Segmentation fault (core dumped)\n"
    by_name = {m.benchmark: m.verdict for m in read(tmp_path, NCCL + crashed).measurements}
    assert by_name == {"all-reduce": Verdict.GOOD, "all-gather": Verdict.FAILED}


def test_a_run_killed_after_a_row_of_0_bytes_is_not_forgotten(tmp_path: Path) -> None:
    start = NCCL[: NCCL.index("           8 ")].replace("all_reduce_perf", "all_gather_perf")
    row = "0 0 float none -1 14.20 0.00 0.00 0 14.05 0.00 0.00 0\n"
    by_name = {m.benchmark: m.verdict for m in read(tmp_path, f"{start} {row}{NCCL}").measurements}
    assert by_name == {"all-gather": Verdict.FAILED, "all-reduce": Verdict.GOOD}
