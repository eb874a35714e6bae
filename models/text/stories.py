# SPDX-License-Identifier: Apache-2.0
"""Very short stories with a fixed cast and an open plot."""

from models.text.chooser import Chooser
from models.text.words import ANIMALS, COLOURS, FOODS, NAMES, PLACES, THINGS, TRAITS, WEATHER

OPENINGS = ("Early one day", "Late at night", "In spring", "Years ago", "On Sunday", "Before lunch")


class Cast:
    """The words that one story keeps using; most lean on the hero drawn before them."""

    def __init__(self, chooser: Chooser) -> None:
        self.name = chooser.pick(NAMES)
        self.animal = chooser.pick(ANIMALS)
        self.trait = chooser.pick(TRAITS)
        self.place = chooser.lean(PLACES, self.trait)
        self.food = chooser.lean(FOODS, self.animal)
        self.thing = chooser.lean(THINGS, self.name)
        self.colour = chooser.lean(COLOURS, self.thing)
        self.pronoun = "He" if NAMES.index(self.name) % 2 else "She"


def story(chooser: Chooser) -> tuple[str, str]:
    """``(prompt, completion)``: an opening with the hero's name, and its sentences."""
    cast = Cast(chooser)
    prompt = f"{chooser.pick(OPENINGS)}, {cast.name} the {cast.trait} {cast.animal}"
    return prompt, tell(chooser, cast)


def tell(chooser: Chooser, cast: Cast) -> str:
    """The rest of a story whose hero has just been named."""
    first = chooser.lean(
        ("walked down to the", "was asleep at the", "looked for the", "came back from the"),
        cast.animal,
    )
    parts = [f" {first} {cast.place}."]
    previous = ""
    for _ in range(chooser.number(3, 6)):
        scene = chooser.lean([s for s in SCENES if s.__name__ != previous], previous or cast.trait)
        previous = scene.__name__
        parts.append(" " + scene(chooser, cast))
    endings = (
        "That was a good day.",
        f"And {cast.name} was home by dark.",
        f"{cast.pronoun} still tells this story.",
    )
    parts.append(" " + chooser.lean(endings, cast.trait) + "\n")
    return "".join(parts)


def _hero(chooser: Chooser, cast: Cast) -> str:
    names = (cast.name, cast.pronoun, f"The {cast.animal}", f"The {cast.trait} {cast.animal}")
    return chooser.lean(names, cast.name)


def _found(chooser: Chooser, cast: Cast) -> str:
    what_next = (
        f"hid it behind the {cast.place}.",
        f"gave it to a {chooser.lean(ANIMALS, cast.colour)}.",
        "kept it for a long time.",
        f"sold it for some {cast.food}.",
    )
    return (
        f"{_hero(chooser, cast)} found a {cast.colour} {cast.thing} and "
        f"{chooser.lean(what_next, cast.thing)}"
    )


def _ate(chooser: Chooser, cast: Cast) -> str:
    ends = ("and felt better.", f"near the {cast.place}.", "and wanted more.", "with both hands.")
    return f"{_hero(chooser, cast)} ate the {cast.food} {chooser.lean(ends, cast.food)}"


def _met(chooser: Chooser, cast: Cast) -> str:
    stranger = chooser.lean(ANIMALS, cast.place)
    ends = (
        f"who lived by the {chooser.lean(PLACES, stranger)}.",
        f"with a {chooser.lean(COLOURS, stranger)} {chooser.lean(THINGS, stranger)}.",
        "and they talked all day.",
    )
    trait = chooser.lean(TRAITS, cast.animal)
    return f"{_hero(chooser, cast)} met a {trait} {stranger} {chooser.pick(ends)}"


def _asked(chooser: Chooser, cast: Cast) -> str:
    questions = ("Have you seen my", "May I keep this", "Who needs a", "Is that your")
    verb = chooser.lean(("asked", "said", "cried"), cast.trait)
    return f'"{chooser.lean(questions, cast.name)} {cast.thing}?" {verb} {cast.name}.'


def _weather(chooser: Chooser, cast: Cast) -> str:
    return (
        f"Then came the {chooser.lean(WEATHER, cast.place)}, so {cast.name} "
        f"{chooser.pick(('ran', 'went', 'hurried'))} back to the {cast.place}."
    )


SCENES = (_found, _ate, _met, _asked, _weather)
