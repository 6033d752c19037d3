"""Where queries run: DuckDB in-process by default, Spark for more than one machine."""

from hakaru.engine._base import Engine, Value, open_engine

__all__ = ["Engine", "Value", "open_engine"]
