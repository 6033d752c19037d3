"""The fixed texts of findings, figures and reports in English, Japanese and Korean, as TOML files.

English has what no code says; what the registries say in English (titles, questions, rules, metrics) is
translated in the other files, and stands as it is where a translation is missing.
"""

from hakaru.texts._agree import agreeing
from hakaru.texts._language import LANGUAGES, UNKNOWN, VOCABULARIES, Language, language

__all__ = ["LANGUAGES", "UNKNOWN", "VOCABULARIES", "Language", "agreeing", "language"]
