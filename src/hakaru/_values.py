"""What a setting may be: each function gives the value, or a ValueError that says what was expected."""

from __future__ import annotations

import difflib
import ipaddress
import math
import re
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from hakaru.errors import SettingsError

# files beside the zones in the system's folder: DuckDB does not know them, and `right/` counts leap seconds
NO_ZONES = ("localtime", "posixrules", "Factory", "posix/", "right/")
MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*(MB|GB|MiB|GiB)")


def is_zone(name: str) -> bool:
    """Whether it is the name of an IANA time zone (to list them all is slow)."""
    if name.startswith(NO_ZONES):
        return False
    try:
        return bool(ZoneInfo(name).key)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False


def check_zone(name: str) -> str:
    """The zone, or an error with the zones that are spelled most like it."""
    if is_zone(name):
        return name
    zones = [each for each in sorted(available_timezones()) if not each.startswith(NO_ZONES)]
    near = difflib.get_close_matches(name, zones, n=3)
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    raise SettingsError(f"expected an IANA time zone such as Asia/Tokyo, found {name!r}{meant}")


def positive(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"expected a whole number of at least 1, found {value!r}")
    return value


def positive_number(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < math.inf:
        raise ValueError(f"expected a number above 0, found {value!r}")
    return float(value)


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, found {value!r}")
    return value


def text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"expected a text, found {value!r}")
    return value


def texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list of texts, found {value!r}")
    return tuple(text(item) for item in value)


def header(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9-]{1,64}", value):
        raise ValueError(f'expected a header\'s name such as "X-Remote-User", found {value!r}')
    return value


def address(value: Any) -> str:
    try:
        return str(ipaddress.ip_address(value if isinstance(value, str) else ""))
    except ValueError:
        raise ValueError(f'expected an IP address such as "10.0.0.5", found {value!r}') from None


def memory(value: Any) -> str:
    found = MEMORY.fullmatch(value) if isinstance(value, str) else None
    if found is None or float(found.group(1)) <= 0:
        raise ValueError(f'expected a size such as "2GB", found {value!r}')
    return str(value)


def num_bytes(value: Any) -> int:
    number, unit = MEMORY.fullmatch(memory(value)).groups()  # type: ignore[union-attr]
    return int(float(number) * {"MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}[unit])


def share(value: Any) -> float:
    """A share from a number such as 0.01, or from a text such as 1%."""
    text = str(value).strip()
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = math.nan
    if isinstance(value, bool) or not 0 <= found <= 1:
        raise ValueError(f'expected a share such as "1%" or 0.01, found {value!r}')
    if found == 1 and not text.endswith("%"):
        raise ValueError(f'{value!r} could be "1%" or "100%": write it with %')
    return found


def zone(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected an IANA time zone such as Asia/Tokyo, found {value!r}")
    try:
        return check_zone(value)
    except SettingsError as error:
        raise ValueError(str(error)) from None


def unit(value: Any) -> str:
    if value not in ("gpu", "cpu"):
        raise ValueError(f'expected "gpu" or "cpu", found {value!r}')
    return str(value)


def hours(value: Any) -> tuple[int, int]:
    whole = isinstance(value, list | tuple) and all(type(hour) is int for hour in value)
    if not whole or len(value) != 2 or not 0 <= value[0] < value[1] <= 24:
        raise ValueError(f"expected two hours such as [9, 18], found {value!r}")
    return (value[0], value[1])
