"""What a verdict says, to the letter: the numbers, the weeks and who would lose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hakaru.sim.advise import Constraints, Found, Loss, Measured, Objective
from hakaru.sim.advise.verdict import verdict_of
from hakaru.sim.advise.words import change_text, losses_text
from tests.sim.test_verdict import evidence, measured

EVE = Loss("user", "eve", 5, 100.0, 400.0)
FEW = Loss("account", "lab", 4, 50.0, 200.0)
OBJECTIVE = Objective("p95_wait_s", words="ann's jobs")
GAIN = "p95 wait of ann's jobs goes from 20.0 min to 10.0 min (−50.0 %) on the weeks that were not searched"
# 30 to 15 min on the weeks searched, 20 to 10 min on those held out
BEFORE, AFTER = (
    Found({}, measured(1800), measured(1200)),
    Found({}, measured(900), measured(600)),
)
PLAIN = evidence(objective=OBJECTIVE, baseline=BEFORE, found=AFTER, num_weeks=14, error=90.0)


def test_a_change_says_how_sure_it_is_and_who_is_kept_from_losing() -> None:
    got = verdict_of(PLAIN)
    assert got.sentence == (
        f"Change the settings below: {GAIN} (95 % interval of the change −11.7 min to −5.0 min from 14 "
        "weeks; the replay's own error on these weeks is 90 s). No user loses more than 10 % in mean wait."
    )
    both = Constraints(loses={"account": 0.25, "user": 0.1})
    assert verdict_of(replace(PLAIN, constraints=both)).sentence.endswith(
        " No account loses more than 25 % and no user loses more than 10 % in mean wait."
    )
    anybody = verdict_of(replace(PLAIN, constraints=Constraints()))
    assert anybody.sentence.endswith("error on these weeks is 90 s).")


def test_a_trial_says_all_that_is_in_doubt() -> None:
    found = replace(AFTER, held_out=measured(600, losses=(FEW,)))
    got = verdict_of(replace(PLAIN, found=found, interval=None, num_weeks=3, error=None))
    assert got.why == (
        "some with fewer than 5 jobs would lose: account lab (50 s to 3.3 min on average, +300.0 %)",
        "an interval needs 10 weeks held out and has 3, so how much of the gain is chance is not known",
        "how far the replay is from the record in p95 wait is not known",
    )
    assert got.sentence == (
        f"Try the settings below on a part of the machine first: {GAIN}. But {'; '.join(got.why)}."
    )


def test_a_gain_smaller_than_the_error_says_both() -> None:
    (why,) = verdict_of(replace(PLAIN, error=7200.0)).why
    assert why == (
        "the best that was found brings p95 wait from 20.0 min to 10.0 min, and the replay itself is "
        "farther from the record (by 2.0 h in a month's p95 wait of ann's jobs, on average over the weeks "
        "held out)"
    )


def test_what_is_broken_on_the_weeks_held_out_names_those_who_surely_lose() -> None:
    held = replace(measured(600, losses=(EVE, FEW)), constraints={"a": 1.0, "b": 0.0, "c": 2.0})
    (why,) = verdict_of(replace(PLAIN, found=replace(AFTER, held_out=held))).why
    assert why == (
        "on the weeks held out the best that was found breaks: a, c; who would lose: user eve (100 s to "
        "6.7 min on average, +300.0 %)"
    )
    nobody = replace(held, losses=(FEW,))
    (why,) = verdict_of(replace(PLAIN, found=replace(AFTER, held_out=nobody))).why
    assert why == "on the weeks held out the best that was found breaks: a, c"


def test_the_interval_that_holds_zero_is_of_so_many_weeks() -> None:
    got = verdict_of(replace(PLAIN, interval=(-700.0, 1.0)))
    assert got.sentence == (
        "Do not change anything: on the 14 weeks held out the best that was found is better as a whole, but "
        "weeks differ so much that the 95 % interval of the change holds zero."
    )


def test_nothing_found_says_what_was_tried_and_what_the_largest_gain_would_break() -> None:
    same = replace(AFTER, searched=measured(1800))
    nothing = replace(PLAIN, found=same, num_trials=49, num_settings=37)
    text = (
        "none of the 37 settings tried keeps what must be kept and beats what you have on the weeks "
        "searched"
    )
    few = " (49 trials are few for 1 setting: more may find something, --trials 100)"
    assert verdict_of(nothing).why == (text + few,)
    assert "(1 trial is few for 1 setting: " in verdict_of(replace(nothing, num_trials=1)).sentence
    broken = replace(measured(300, 0.5, (EVE, FEW)), constraints={"a": 1.0, "b": -1.0})
    refused = Found({}, broken, measured(9999))
    many = replace(nothing, num_trials=50, refused=refused)
    assert verdict_of(many).why == (
        f"{text}. The largest gain (p95 wait from 30.0 min to 5.0 min there) breaks: a; who would lose: user "
        "eve (100 s to 6.7 min on average, +300.0 %)",
    )
    no_loser = replace(many, refused=Found({}, replace(broken, losses=(FEW,)), measured(1)))
    assert verdict_of(no_loser).why[0].endswith("5.0 min there) breaks: a")


def test_the_first_reason_against_a_change_is_the_one_that_is_told() -> None:
    """No gain on the weeks searched goes before what happens on those held out."""
    worse = Found({}, measured(1800), measured(1300, 0.5, (EVE,)))
    (why,) = verdict_of(replace(PLAIN, found=worse, error=9999.0)).why
    assert why.startswith("none of the 90 settings")
    (why,) = verdict_of(replace(PLAIN, found=replace(worse, searched=measured(900)))).why
    assert why == (
        "what was best on the weeks searched is no better than what you have on those held out"
    )


def test_a_change_of_utilisation_is_in_its_own_words() -> None:
    sides = [Measured(-share, {"utilisation": share}, {}) for share in (0.5, 0.6)]
    got = verdict_of(
        replace(
            PLAIN,
            objective=Objective("utilisation"),
            baseline=Found({}, sides[0], sides[0]),
            found=Found({}, sides[1], sides[1]),
            interval=(0.05, 0.15),
            error=0.01,
        )
    )
    assert got.sentence.startswith(
        "Change the settings below: utilisation of all jobs goes from 50.0 % to 60.0 % (+20.0 %) on the "
        "weeks that were not searched (95 % interval of the change 5.0 % to 15.0 % from 14 weeks; the "
        "replay's own error on these weeks is 1.0 %)."
    )


def test_who_loses_is_told_in_seconds_where_they_hardly_waited() -> None:
    def one(before: float, after: float) -> str:
        return losses_text([Loss("user", "u", 9, before, after)]).rpartition(", ")[2]

    assert one(0.9, 90.9) == "+90 s)"
    assert one(1.0, 91.0) == "+9,000.0 %)"
    many = [Loss("user", f"u{n}", 9, 100.0, 400.0) for n in range(1205)]
    assert losses_text(many).endswith(", and 1,200 more")
    assert losses_text([]) == ""


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [(-2.0, -3.0, "−50.0 %"), (0.0, 0.0, "0.0 %"), (0.0, 0.5, "new"), (4.0, 5.0, "+25.0 %")],
)
def test_changes_from_nothing_and_below_it(before: float, after: float, text: str) -> None:
    assert change_text(before, after) == text
