"""Who asks, and whether they may: tokens, sessions of the sign-in form, a trusted proxy, roles."""

from hakaru.web.access.viewer import OPERATOR, USER, Viewer

__all__ = ["OPERATOR", "USER", "Viewer"]
