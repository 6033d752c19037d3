"""Where a job fits on nodes: since when each has had room without a break, looking ahead slice by slice."""

from __future__ import annotations

from hakaru.sim._conservative._known import clear_until, learn
from hakaru.sim._conservative._profile import (
    find,
    first_raised,
    first_with,
    follower,
    preceding,
    row_of,
    time_of,
)
from hakaru.sim._conservative._state import (
    EXTRA,
    LOCALITY,
    NEED,
    NUM_FIT,
    OWN,
    PACKING,
    PICK,
    RAISED_FROM,
    RAISED_UNTIL,
    THEN,
    compiled,
    inlined,
)
from hakaru.sim._records import ANYWHERE, BEST_FIT, NEVER, REQUIRED


@inlined
def takes(J, N, j, x):
    """What job j takes of node x."""
    return N[x].size if J[j].whole else J[j].pes


@compiled
def _prepare(J, N, A, K, j, time, is_held):
    """What job j needs of each node, and what it holds there itself; all have room as far as is known."""
    for x in range(len(N)):
        is_usable = N[x].open and (J[j].model < 0 or N[x].model == J[j].model)
        is_usable = is_usable and N[x].size >= J[j].pes
        K[NEED, x] = takes(J, N, j, x) if is_usable else NEVER
        K[THEN, x], K[OWN, x] = time, 0
    for y in range(J[j].offset, J[j].offset + J[j].num_nodes if is_held else 0):
        K[OWN, A[y]] = takes(J, N, j, A[y])


@compiled
def _look_ahead(B, Q, F, K, n, at, until, own):
    """Go on from a slice until a time; nodes without room have it next behind the slice that lacks it.

    From the time `own` on, what the job holds itself is free for it.
    """
    while at != -1 and time_of(B, Q, at) < until:
        row, is_own = row_of(B, Q, at), time_of(B, Q, at) >= own
        at = follower(B, n, at)
        end = time_of(B, Q, at) if at != -1 else NEVER
        if is_own:
            for x in range(F.shape[1]):
                K[THEN, x] = end if F[row, x] + K[OWN, x] < K[NEED, x] else K[THEN, x]
        else:
            for x in range(F.shape[1]):
                K[THEN, x] = end if F[row, x] < K[NEED, x] else K[THEN, x]
    return at


@compiled
def _measure(B, Q, F, K, n, at, until, own):
    """The least that each node has free from a slice until a time."""
    K[EXTRA, :] = NEVER
    while at != -1 and time_of(B, Q, at) < until:
        row, is_own = row_of(B, Q, at), time_of(B, Q, at) >= own
        for x in range(F.shape[1]):
            K[EXTRA, x] = min(K[EXTRA, x], F[row, x] + (K[OWN, x] if is_own else 0))
        at = follower(B, n, at)


@compiled
def _is_picked(K, have, x):
    for y in range(have):
        if K[PICK, y] == x:
            return True
    return False


@compiled
def _pick_from(J, N, K, n, j, t, switch, have):
    """Add to the picked, from one switch (-1: any), the tightest or emptiest nodes; how many there are."""
    sign = 1 if n[PACKING] == BEST_FIT else -1
    while have < J[j].num_nodes:
        best = -1
        for x in range(len(N)):
            if K[THEN, x] > t or (switch >= 0 and N[x].switch != switch):
                continue
            if best >= 0 and sign * K[EXTRA, x] >= sign * K[EXTRA, best]:
                continue
            if not _is_picked(K, have, x):
                best = x
        if best == -1:
            break
        K[PICK, have] = best
        have += 1
    return have


@compiled
def _pick_near(J, N, K, n, j, t):
    """Under one switch, the one with the fewest nodes to spare; else, where allowed, under few."""
    wanted, best = J[j].num_nodes, -1
    K[NUM_FIT, :] = 0
    for x in range(len(N)):
        K[NUM_FIT, N[x].switch] += K[THEN, x] <= t
    for w in range(len(N)):
        if K[NUM_FIT, w] >= wanted and (best == -1 or K[NUM_FIT, w] < K[NUM_FIT, best]):
            best = w
    if best >= 0:
        return _pick_from(J, N, K, n, j, t, best, 0) == wanted
    if n[LOCALITY] == REQUIRED:
        return False
    have = 0
    while have < wanted:
        w = 0
        for x in range(len(N)):
            w = x if K[NUM_FIT, x] > K[NUM_FIT, w] else w
        have = _pick_from(J, N, K, n, j, t, w, have)
        K[NUM_FIT, w] = -1
    return True


@compiled
def _pick(J, N, B, Q, F, K, n, j, at, own):
    """Choose among the nodes that have room from a slice on, of which there are enough."""
    t = time_of(B, Q, at)
    _measure(B, Q, F, K, n, at, t + J[j].estimate, own)
    if J[j].num_nodes > 1 and n[LOCALITY] != ANYWHERE:
        return _pick_near(J, N, K, n, j, t)
    return _pick_from(J, N, K, n, j, t, -1, 0) == J[j].num_nodes


@compiled
def _search(J, N, A, B, Q, F, K, n, j, at, before, own):
    """The first slice from one on, and before a time, from which job j fits; -1 where there is none."""
    at = first_with(B, Q, n, at, J[j].pes)
    if at == -1 or time_of(B, Q, at) >= before:
        return -1
    _prepare(J, N, A, K, j, time_of(B, Q, at), own < NEVER)
    ahead = at
    while at != -1 and time_of(B, Q, at) < before:
        t = time_of(B, Q, at)
        ahead = _look_ahead(B, Q, F, K, n, ahead, t + J[j].estimate, own)
        num, following = 0, NEVER
        for x in range(len(N)):
            num += K[THEN, x] <= t
            following = min(following, K[THEN, x])
        if num >= J[j].num_nodes and _pick(J, N, B, Q, F, K, n, j, at, own):
            return at
        at = find(B, Q, n, following) if t < following < NEVER else follower(B, n, at)
    return -1


@compiled
def earliest_on_nodes(J, N, A, B, Q, F, K, n, j):
    return _search(J, N, A, B, Q, F, K, n, j, 0, NEVER, NEVER)


@compiled
def _since_when(J, A, B, Q, F, n, j, own):
    """From when on the one node that job j holds has had room for it right before its place."""
    at, x = find(B, Q, n, own), A[J[j].offset]
    while at > 0:
        before = preceding(B, at)
        if F[row_of(B, Q, before), x] < J[j].pes:
            break
        at = before
    return time_of(B, Q, at)


@compiled
def earlier_on_nodes(J, N, A, B, Q, F, K, M, n, j, own, looked):
    """An earlier one than the place it has; what it would use must have been raised since it last looked."""
    pes, length, is_single = J[j].pes, J[j].estimate, J[j].num_nodes == 1
    at = first_raised(B, Q, n, find(B, Q, n, n[RAISED_FROM]), pes, looked)
    if at == -1 or time_of(B, Q, at) >= own + length:
        return -1
    since, before = time_of(B, Q, at) - length + 1, min(own, n[RAISED_UNTIL])
    if is_single:
        clear = clear_until(M, pes, length, J[j].model)
        since = max(since, min(clear, _since_when(J, A, B, Q, F, n, j, own)))
    if since >= before:
        return -1
    at = find(B, Q, n, since)
    if time_of(B, Q, at) < since:
        at = follower(B, n, at)
    at = _search(J, N, A, B, Q, F, K, n, j, at, before, own)
    if is_single:
        learn(M, n, pes, length, J[j].model, time_of(B, Q, at) if at != -1 else before)
    return at
