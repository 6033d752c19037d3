"""Which nodes a job may have, now or when others will have ended."""

from __future__ import annotations

from hakaru.sim._queueing._state import (
    HEAD,
    JOB_BITS,
    JOB_MASK,
    LOCALITY,
    MAX_EXTRA,
    NUM_RUNNING,
    PACKING,
    SHADOW,
    SHADOW_KNOWN,
    compiled,
    inlined,
)
from hakaru.sim._records import ANYWHERE, BEST_FIT, NEVER, REQUIRED


@inlined
def takes(J, N, j, x):
    """What job j takes of node x."""
    return N[x].size if J[j].whole else J[j].pes


@inlined
def _fits(N, has, model, pes, whole, x, use_extra):
    """Whether node x, of which `has` is free, can take `pes` of a job."""
    if not N[x].open or has < pes or (model >= 0 and N[x].model != model):
        return False
    need = N[x].size if whole else pes
    return has >= need and not (use_extra and N[x].extra < need)


@inlined
def _is_choice(J, N, j, x, has, use_extra, switch):
    """Whether job j fits on node x under a switch (-1: any)."""
    if switch >= 0 and N[x].switch != switch:
        return False
    return _fits(N, has, J[j].model, J[j].pes, J[j].whole, x, use_extra)


@compiled
def _choose_from(J, N, n, j, use_then, use_extra, switch, have):
    """Add to `pick`, from one switch (-1: any), the tightest or emptiest nodes; how many there are."""
    level = -1  # what the nodes taken last have free
    while have < J[j].num_nodes:
        following = -1
        for x in range(len(N)):
            has = N[x].then if use_then else N[x].free
            if n[PACKING] == BEST_FIT:
                is_nearer = has > level and (following == -1 or has < following)
            else:
                is_nearer = has > following and (level == -1 or has < level)
            if is_nearer and _is_choice(J, N, j, x, has, use_extra, switch):
                following = has
        if following == -1:
            break
        level = following
        for x in range(len(N)):
            has = N[x].then if use_then else N[x].free
            if have == J[j].num_nodes or has != level:
                continue
            if _is_choice(J, N, j, x, has, use_extra, switch):
                N[have].pick = x
                have += 1
    return have


@compiled
def _choose_near(J, N, n, j, use_then, use_extra):
    """Under one switch, the one with the fewest nodes to spare; else, where allowed, under few."""
    wanted, num_fit = J[j].num_nodes, 0
    for x in range(len(N)):
        N[x].num_fit = 0
    for x in range(len(N)):
        has = N[x].then if use_then else N[x].free
        if _fits(N, has, J[j].model, J[j].pes, J[j].whole, x, use_extra):
            N[N[x].switch].num_fit += 1
            num_fit += 1
    best = -1
    for w in range(len(N)):
        if N[w].num_fit >= wanted and (best == -1 or N[w].num_fit < N[best].num_fit):
            best = w
    if best >= 0:
        return _choose_from(J, N, n, j, use_then, use_extra, best, 0) == wanted
    if n[LOCALITY] == REQUIRED or num_fit < wanted:
        return False
    have = 0
    while have < wanted:
        w = 0
        for x in range(len(N)):
            w = x if N[x].num_fit > N[w].num_fit else w
        have = _choose_from(J, N, n, j, use_then, use_extra, w, have)
        N[w].num_fit = -1
    return True


@compiled
def choose(J, N, n, j, use_then, use_extra):
    """Put into `pick` the nodes on which job j fits; whether there are enough."""
    pes, model, wanted = J[j].pes, J[j].model, J[j].num_nodes
    if wanted > len(N):
        return False
    if wanted > 1 and n[LOCALITY] != ANYWHERE:
        return _choose_near(J, N, n, j, use_then, use_extra)
    if wanted > 1:
        return _choose_from(J, N, n, j, use_then, use_extra, -1, 0) == wanted
    best, best_free = -1, 0
    for x in range(len(N)):
        has = N[x].then if use_then else N[x].free
        if not _fits(N, has, model, pes, False, x, use_extra):
            continue
        better = has < best_free if n[PACKING] == BEST_FIT else has > best_free
        if best == -1 or better:
            best, best_free = x, has
    N[0].pick = best
    return best >= 0


@inlined
def node_of(J, N, A, j, x):
    """The x-th node of a job that runs; a flat pool keeps no list."""
    return 0 if len(N) == 1 else A[J[j].offset + x]


@inlined
def is_on(J, N, A, j, node):
    for x in range(J[j].num_nodes):
        if node_of(J, N, A, j, x) == node:
            return True
    return False


@inlined
def largest(N, use_extra):
    """The most that one open node has free (and to spare for jobs that outlast the shadow time)."""
    most = 0
    for x in range(len(N)):
        if N[x].open:
            has = min(N[x].free, N[x].extra) if use_extra else N[x].free
            most = max(most, has)
    return most


@inlined
def _release_then(J, N, A, n, r, j, whole):
    """Give a running job's PEs back in `then`; how many more nodes fit job j by that."""
    more = 0
    for y in range(J[r].num_nodes):
        x = node_of(J, N, A, r, y)
        more -= _fits(N, N[x].then, J[j].model, J[j].pes, whole, x, False)
        N[x].then += takes(J, N, r, x)
        more += _fits(N, N[x].then, J[j].model, J[j].pes, whole, x, False)
    return more


@compiled
def find_shadow(J, N, A, R, n):
    """When the head can begin by the estimates, and what is free then beyond it."""
    j = n[HEAD]
    num = 0
    whole = J[j].whole
    for x in range(len(N)):
        N[x].then = N[x].free
        num += _fits(N, N[x].then, J[j].model, J[j].pes, whole, x, False)
    n[SHADOW] = NEVER
    x = 0
    while x < n[NUM_RUNNING]:
        until = R[x] >> JOB_BITS
        while x < n[NUM_RUNNING] and R[x] >> JOB_BITS == until:
            num += _release_then(J, N, A, n, R[x] & JOB_MASK, j, whole)
            x += 1
        if num >= J[j].num_nodes and choose(J, N, n, j, True, False):
            n[SHADOW] = until
            for y in range(J[j].num_nodes):
                N[N[y].pick].then -= takes(J, N, j, N[y].pick)
            break
    for x in range(len(N)):
        N[x].extra = N[x].then
    n[SHADOW_KNOWN] = 1
    n[MAX_EXTRA] = largest(N, True)
