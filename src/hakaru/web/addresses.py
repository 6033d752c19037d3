"""Who is at the other end of a connection: the trusted proxy, or one of those who are counted."""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_proxy(address: str, proxy: str | None) -> bool:
    """Whether this is the proxy's own address; its neighbours in the same network are not the proxy."""
    found = _parsed(address)
    return proxy is not None and found is not None and found == _parsed(proxy)


def origin_of(address: str) -> str:
    """An IPv4 address, or the network of 2**64 addresses that one host of IPv6 has to itself."""
    found = _parsed(address.partition("%")[0])
    if found is None:
        return address
    if isinstance(found, ipaddress.IPv6Address) and not found.is_loopback:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def _parsed(address: str) -> Address | None:
    """The address; an IPv4 address that is written as one of IPv6 (::ffff:10.0.0.5) is IPv4."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
