"""A page's address: read into the same models as the API's, and written again without what is empty."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, get_origin
from urllib.parse import urlencode

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from hakaru.web.filters import Filters

M = TypeVar("M", bound=BaseModel)
Pairs = list[tuple[str, str]]
NAMES = tuple(Filters.model_fields)


def given(request: Request) -> Pairs:
    """What the address says; a form's empty fields say nothing."""
    return [(name, value) for name, value in request.query_params.multi_items() if value.strip()]


def has_empty(request: Request) -> bool:
    return len(given(request)) != len(request.query_params.multi_items())


def read(model: type[M], pairs: Iterable[tuple[str, str]]) -> M:
    """The parameters as a model; what is wrong is told as the API tells it."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if _takes_many(model, name):
            values.setdefault(name, []).append(value)
        elif name in values:
            raise _wrong(name, value, "is given twice")
        else:
            values[name] = value
    try:
        return model(**values)
    except ValidationError as error:
        found = [each | {"loc": ("query", *each["loc"])} for each in error.errors()]
        raise RequestValidationError(found) from None


def pairs_of(model: BaseModel) -> Pairs:
    """What of a model differs from its defaults, as the address says it."""
    found: Pairs = []
    for name, value in model.model_dump(exclude_defaults=True, exclude_none=True).items():
        values = value if isinstance(value, list | tuple) else [value]
        found += [(name, _written(each)) for each in values]
    return found


def written(path: str, pairs: Iterable[tuple[str, Any]], **more: Any) -> str:
    """An address with these pairs; `more` takes the place of a name, or its place away where it is None."""
    kept = [(name, value) for name, value in pairs if name not in more]
    kept += [(name, value) for name, value in more.items() if value is not None]
    return f"{path}?{urlencode(kept)}" if kept else path


def without(pairs: Pairs, name: str, value: str | None = None) -> Pairs:
    return [each for each in pairs if each[0] != name or (value is not None and each[1] != value)]


def split(pairs: Pairs) -> tuple[Pairs, Pairs]:
    """The filters, and what else the address says."""
    return [p for p in pairs if p[0] in NAMES], [p for p in pairs if p[0] not in NAMES]


def only(pairs: Iterable[tuple[str, str]], names: Iterable[str]) -> Pairs:
    allowed = set(names)
    return [each for each in pairs if each[0] in allowed]


def _takes_many(model: type[BaseModel], name: str) -> bool:
    field = model.model_fields.get(name)
    return field is not None and get_origin(field.annotation) is tuple


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _wrong(name: str, value: str, why: str) -> RequestValidationError:
    return RequestValidationError([{"loc": ("query", name), "msg": why, "input": value}])
