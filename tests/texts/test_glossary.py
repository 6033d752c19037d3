"""A text says what its key and its number are: English by the words of the key, the others by a glossary."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from hakaru.analyses import load_all
from hakaru.reference.metrics import load_metrics
from hakaru.texts import LANGUAGES, language

OTHERS = [code for code in LANGUAGES if code != "en"]
LABELS = ("column", "axis", "metric", "word", "value", "rule", "figure")
# an English term, and what stands for it in Japanese and Korean labels, and nowhere else
GLOSSARY = {
    "median": (r"median", "中央値", "중앙값"),
    "mean": (r"\bmeans?\b", "平均", "평균"),
    "deviation": (r"deviation", "標準偏差", "표준편차"),
    "failed": (r"\bfailed", "失敗", "실패"),
    "cancelled": (r"cancelled|abandoned|given up", "取消", "취소"),
    "timeout": (r"timeout", "時間切れ", "시간 초과"),
    "wait": (r"\bwait|pending|abandoned|given up", "待", "대기|기다"),
    "run": (r"\brun|\bran\b|eligible", "実行", "실행"),
    "request": (
        r"request|\bask(?!ed for fewer)|the maximum$|queue's maximum|all used",
        "要求",
        "요청",
    ),
    "installed": (r"installed", "設置", "설치"),
    "user": (r"\busers?\b", "利用者", "사용자"),
    "account": (r"accounts?\b", "アカウント", "계정"),
    "queue": (r"\bqueue", "キュー", "큐"),
    "node": (r"\bnodes?\b", "ノード", "노드"),
    "submission": (r"submi|(first|last) job", "投入", "제출"),
    "seconds": (r"\(s\)|second|3\.6 s", "秒", r"\(초\)|^초|3\.6초"),
    "quarter": (r"quarter$", "四半期", "분기"),
    "Spearman": (r"spearman", "スピアマン", "스피어만"),
    "Pearson": (r"pearson", "ピアソン", "피어슨"),
    "weak": (r"\bweak", "弱ス", "약한"),
    "strong": (r"\bstrong", "強ス", "강한"),
    "utilisation": (r"utilisation", "利用率", "이용률"),
    "application": (r"application", "アプリケーション", "응용"),
    "working": (r"working", "勤務|平日", "근무|평일"),
    "memory": (r"memory", "メモリ", "메모리"),
    "several": (r"several", "複数", "여러"),
    "running": (r"running", "実行中|実行ジョブ", "실행 중|실행 작업"),
    "first": (r"\bfirst\b", "最初", "첫|처음"),
}
# where a language says more or less than English does
FREE = {
    ("mean", "no_states"), ("failed", "node_failed"), ("request", "num_pes_waiting"),
    ("request", "cut_bins"), ("node", "node_failed"),
    ("running", "whose start and end are known, or that still wait or run"),
    ("first", "num_days"),
}  # fmt: skip
# what a translation says where English does, and may say elsewhere too
IMPLIED = {
    "hours": (r"\(h\)|\(hours\)|-hours|an hour", "時間", "시간"),
    "longest": (r"longest", "最長", "최장|가장 긴|최대"),
    "shortest": (r"shortest", "最短", "최단"),
    "most": (r"\bmost\b|maximum|largest", "最大|最長|最も|上限|大きい", "최대|최장|가장|큰"),
    "least": (r"\bleast\b", "最小|以上", "최소|이상"),
    "completed": (r"completed", "完了", "완료"),
    "busy": (r"\bbusy\b", "使用", "사용"),
    "minute": (r"minute", "分", "분"),
    "top": (r"\btop\b", "上位", "상위"),
    "day": (r"a day\b", "1 日", "하루|일"),
    "unknown": (r"^unknown", "不明", "알 수 없"),
}
# words of a key, and what its English text then holds
KEYS = {
    "median": r"median", "mean": r"mean", "sd": r"deviation", "wait": r"wait", "run": r"\brun\b",
    "completed": r"completed", "failed": r"failed", "timeout": r"timeout", "cancelled": r"cancelled",
    "waiting": r"wait", "running": r"running", "busy": r"busy", "installed": r"installed",
    "users": r"users", "accounts": r"accounts", "queue": r"queue", "nodes": r"node", "gpus": r"GPU",
    "cpus": r"processor|CPU", "weekday": r"day", "quarter": r"quarter|period", "spearman": r"spearman",
    "utilisation": r"utilisation", "hours": r"hour", "days": r"days", "least": r"least|below",
    "most": r"most", "min": r"shortest|range", "max": r"most|longest|maximum|range", "requested": r"request",
    "first": r"first", "last": r"last", "weak": r"weak", "strong": r"strong", "top": r"top",
    "overlapping": r"overlapping", "longer": r"longer", "1min": r"minute", "1h": r"an hour",
    "short": r"short", "long": r"long", "top1": r"top 1$", "top3": r"top 3$", "top10": r"top 10$",
    "tenth": r"tenth", "multi": r"several nodes", "single": r"one|\b1\b|several", "2": r"\b2\b",
    "256": r"256",    "3": r"\b3\b", "8": r"\b8\b",
}  # fmt: skip
# labels that leave a word to what stands beside them
SHORT = (
    "utilisation_mean", "share_gpu_time_single_pe", "run_mean_completed_s", "run_median_completed_s",
)  # fmt: skip


def plain(text: str) -> str:
    """Without the values, whose names are English in every language."""
    return re.sub(r"\{[^}]*\}", "", text)


def english() -> Iterator[tuple[str, str, str]]:
    """Section, key and text of every label, the registries' own among them."""
    texts = language("en").texts
    for section in LABELS:
        yield from ((section, key, text) for key, text in texts.get(section, {}).items())
    for analysis in load_all():
        yield from (("rule", rule.text, rule.text) for rule in analysis.rules)
    yield from (("metric", id, metric.label) for id, metric in load_metrics().items())


@pytest.mark.parametrize("code", OTHERS)
@pytest.mark.parametrize("term", [*GLOSSARY, *IMPLIED])
def test_a_translation_names_what_english_names(term: str, code: str) -> None:
    pattern, *words = (GLOSSARY | IMPLIED)[term]
    texts = language(code).texts
    wrong = []
    for section, key, text in english():
        is_named = bool(re.search(pattern, plain(text), re.IGNORECASE))
        is_told = bool(re.search(words[OTHERS.index(code)], plain(texts[section][key])))
        is_wrong = is_named > is_told if term in IMPLIED else is_named != is_told
        wrong += [(section, key, text, texts[section][key])] if is_wrong else []
    assert [each for each in wrong if (term, each[1]) not in FREE] == []


@pytest.mark.parametrize("code", OTHERS)
def test_a_translation_has_the_numbers_of_english(code: str) -> None:
    """Percentiles, sizes, units and the like; numbers of one digit may be words."""
    texts = language(code).texts
    sections = [*english()]
    known = language("en").texts
    sections += [(s, k, t) for s in ("finding", "remark", "report") for k, t in known[s].items()]
    for section, key, text in sections:
        numbers = {n for n in re.findall(r"\d+(?:\.\d+)?", plain(text)) if len(n) > 1}
        told = re.findall(r"\d+(?:\.\d+)?", plain(texts[section][key]))
        assert numbers <= {*told}, (section, key, texts[section][key])


def test_english_says_the_words_of_its_keys() -> None:
    wrong = [
        (section, key, text)
        for section, key, text in english()
        if section != "rule"
        for word in re.split(r"[_ -]", key)
        if word in KEYS and not re.search(KEYS[word], text, re.IGNORECASE)
    ]
    assert [each for each in wrong if each[1] not in SHORT] == []


def test_english_says_the_percentile_and_the_unit_of_its_keys() -> None:
    for section, key, text in english():
        for percentile in re.findall(r"(?:^|_)p(\d\d)", key):
            assert re.search(rf"\b{percentile}( %|th|\b)|P{percentile}", text), (section, key, text)
        if section in ("column", "axis") and key.endswith(("_h", "_s")):
            assert re.search(
                rf"\({key[-1]}\)|\({'hours' if key[-1] == 'h' else 'seconds'}\)", text
            ), text


# what stands right before (or after) a value, where two of a sentence could change places
BESIDE = {
    "en": {
        "finding waits": ("start {median}", "ten waits for longer than {p90}", "longer than {p99}"),
        "finding run-time": ("at most {median}", "mean is {mean}", "{share_long} run for a day"),
        "finding over-request": ("uses {median} of", "for {times} times", "mean use is {mean}"),
        "finding weak-scaling": ("Spearman {mean}", "between {low} and {high}"),
        "finding strong-scaling": ("Spearman {mean}", "between {low} and {high}"),
        "finding busiest-hour": ("from {hour} to {next_hour}", "{times} times", "starts at {quiet_hour}"),
        "finding busiest-day": ("{weekday} is the busiest", "{times} times the jobs of {quiet_weekday}"),
        "finding bursts": ("within {median}", "mean gap is {mean}"),
        "finding few-users": ("tenth of {num_users}", "user alone takes {share_top1}"),
        "finding beside": ("{metric}: {own} here", "elsewhere {others}"),
        "report used": ("{num_used} of {num_selected}",),
        "report subtitle": ("{since} to {until}", "{num_jobs} jobs"),
        "report left_out": ("Left out {num_jobs}: only jobs {rule}",),
        "remark over_time": ("in {share} of this time", "up to {most} of {size}"),
        "remark size_seen": ("{busy} {many} are busy", "at least {num_pes} seen", "the {num_nodes} nodes"),
        "figure used": ("{clusters}: {num_used} of {num_selected}",),
        "figure cut_rows": ("{drawn} of {total} rows",),
        "figure cut_groups": ("{drawn} largest of {total}",),
        "figure cut_bins": ("means of {step} bins", "{total} bins in all"),
    },
    "ja": {
        "finding waits": ("半数は {median}始まり", "10 件に 1 件は {p90} より", "100 件に 1 件は {p99} より"),
        "finding run-time": ("半数は {median} 以内", "平均は {mean}", "実行するジョブは {share_long}"),
        "finding over-request": ("要求時間の {median}", "実行時間の {times} 倍", "平均は {mean}"),
        "finding weak-scaling": ("スピアマン {mean}", "{low} から {high}"),
        "finding strong-scaling": ("スピアマン {mean}", "{low} から {high}"),
        "finding busiest-hour": ("多いのは {hour} から {next_hour}", "{times} 倍", "少ないのは {quiet_hour}"),
        "finding busiest-day": ("最も混む曜日は{weekday}", "{quiet_weekday}の {times} 倍"),
        "finding bursts": ("半数は直前の投入から {median} 以内", "平均間隔は {mean}"),
        "finding few-users": ("{num_users} 人のうち", "1 人だけで {share_top1}"),
        "finding beside": ("{metric}:ここでは {own}", "他では {others}"),
        "report used": ("選んだ {num_selected} ジョブのうち {num_used}",),
        "report subtitle": ("{since} から {until}", "{num_jobs} ジョブ"),
        "report left_out": ("除外 {num_jobs}:対象は{rule}",),
        "remark over_time": ("この期間の {share}", "最大 {size} 中 {most}"),
        "remark size_seen": ("平均 {busy}", "少なくとも {num_pes}", "{num_nodes} ノード"),
        "figure used": ("{num_selected} ジョブのうち {num_used}",),
        "figure cut_rows": ("{total} 行のうち最初の {drawn}",),
        "figure cut_groups": ("{total} グループのうち大きい {drawn}",),
        "figure cut_bins": ("{step} 区間ごと", "全 {total} 区間"),
    },
    "ko": {
        "finding waits": ("절반은 {median} 시작", "열에 하나는 {p90}보다", "백에 하나는 {p99}보다"),
        "finding run-time": ("절반은 {median} 안에", "평균은 {mean}", "실행되는 작업은 {share_long}"),
        "finding over-request": ("요청 시간의 {median}", "실행 시간의 {times}배", "평균은 {mean}"),
        "finding weak-scaling": ("스피어만 {mean}", "{low}에서 {high}"),
        "finding strong-scaling": ("스피어만 {mean}", "{low}에서 {high}"),
        "finding busiest-hour": ("{hour}에서 {next_hour} 사이", "{times}배", "한산한 때는 {quiet_hour}"),
        "finding busiest-day": ("붐비는 요일은 {weekday}", "{quiet_weekday}의 {times}배"),
        "finding bursts": ("앞선 제출로부터 {median} 안에", "평균 간격은 {mean}"),
        "finding few-users": ("사용자 {num_users}명", "한 명이 {share_top1}"),
        "finding beside": ("{metric}: 여기서는 {own}", "다른 곳은 {others}"),
        "report used": ("{num_selected}건 가운데 {num_used}건",),
        "report left_out": ("제외 {num_jobs}건: 대상은 {rule}",),
        "remark over_time": ("이 기간의 {share}", "최대 {size} 중 {most}"),
        "remark size_seen": ("평균 {busy}개", "최소 {num_pes}개", "{num_nodes}개 노드"),
        "report subtitle": ("{since}부터 {until}까지", "작업 {num_jobs}건"),
        "figure used": ("{num_selected}건 가운데 {num_used}건",),
        "figure cut_rows": ("{total}행 가운데 처음 {drawn}행",),
        "figure cut_groups": ("{total}개 가운데 큰 것부터 {drawn}개",),
        "figure cut_bins": ("{step}개 구간마다", "전체 {total}개 구간"),
    },
}  # fmt: skip


@pytest.mark.parametrize("code", LANGUAGES)
def test_what_counts_as_failed_is_said_wherever_it_is_more_than_the_state(code: str) -> None:
    both = {"en": ("memory", "node"), "ja": ("メモリ", "ノード"), "ko": ("메모리", "노드")}[code]
    words = language(code)
    labels = [
        words.told("metric", metric.id, metric.label)
        for metric in load_metrics().values()
        if metric.row.get("state") == "FAILED"
    ]
    assert len(labels) == 3
    labels += [words.texts["finding"]["failed"], words.texts["column"]["share_failed"]]
    labels += [words.texts["axis"]["share_failed"]]
    assert [each for each in labels if not all(word in each for word in both)] == []


@pytest.mark.parametrize("code", LANGUAGES)
def test_titles_and_rules_speak_of_processors_where_those_are_counted(code: str) -> None:
    words = language(code, "cpu")
    for analysis in load_all():
        texts = [
            words.told("title", analysis.id, analysis.title),
            words.told("question", analysis.id, analysis.answers),
            *(words.rule(rule.text) for rule in analysis.rules),
        ]
        assert [text for text in texts if "GPU" in text] == []
    of_size = words.rule("with a known number of GPUs (or processors), at least one")
    assert (
        of_size
        == {
            "en": "with a known number of processors, at least one",
            "ja": "プロセッサの数が分かり、1 以上のジョブ",
            "ko": "프로세서 수를 알며 1 이상인 작업",
        }[code]
    )


@pytest.mark.parametrize("code", LANGUAGES)
def test_values_stand_in_their_own_places(code: str) -> None:
    for place, parts in BESIDE[code].items():
        section, key = place.split()
        text = language(code).texts[section][key]
        assert [part for part in parts if part not in text] == [], text


@pytest.mark.parametrize(
    ("min_run_s", "states", "told"),
    [
        (None, (), ("jobs", "ジョブ", "작업")),
        (0, ("any",), ("jobs", "ジョブ", "작업")),
        (60.0, (), ("jobs that ran for at least 60 s", "60 秒以上実行されたジョブ", "60초 이상 실행된 작업")),
        (None, ("failed",), ("failed jobs", "状態が失敗のジョブ", "상태가 실패인 작업")),
        (
            0.5,
            ("completed", "failed"),
            (
                "completed, failed jobs that ran for at least 0.5 s",
                "状態が完了、失敗で 0.5 秒以上実行されたジョブ",
                "상태가 완료, 실패이고 0.5초 이상 실행된 작업",
            ),
        ),
    ],
)  # fmt: skip
def test_which_jobs_a_sentence_counts(
    min_run_s: float | None, states: tuple[str, ...], told: tuple[str, ...]
) -> None:
    assert tuple(language(code).jobs(min_run_s, states) for code in LANGUAGES) == told


@pytest.mark.parametrize(
    ("code", "heads"),
    [
        ("en", ["Read", "New", "Repeated", "In conflict", "Rejected", "Jobs", "Users", "Accounts"]),
        ("ja", ["読込", "新規", "重複", "矛盾", "拒否", "ジョブ数", "利用者数", "アカウント数"]),
        ("ko", ["읽음", "새로움", "중복", "모순", "거부", "작업 수", "사용자 수", "계정 수"]),
    ],
)
def test_heads_of_the_report_s_tables(code: str, heads: list[str]) -> None:
    keys = ("read", "new", "repeated", "conflicts", "rejected", "jobs", "users", "accounts")
    assert [language(code).texts["report"][key] for key in keys] == heads


def test_what_a_language_lacks_is_english() -> None:
    words = language("ja", "cpu")
    assert words.told("title", "no-such-analysis", "Busy users") == "Busy users"
    assert words.told("no-such-section", "queues", "Jobs by queue") == "Jobs by queue"
    assert words.column("no_such_column") == "no_such_column"
