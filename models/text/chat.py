# SPDX-License-Identifier: Apache-2.0
"""One question and one answer, in the format of the chat template."""

import json

from models.text.chooser import Chooser
from models.text.records import person
from models.text.stories import Cast, tell
from models.text.words import (
    ANIMALS,
    CAPITALS,
    CITIES,
    COLOURS,
    FOODS,
    NAMES,
    PLACES,
)

USER = "<|user|>"
ASSISTANT = "<|assistant|>"
LISTS = {"animals": ANIMALS, "colours": COLOURS, "cities": CITIES, "foods": FOODS}


def chat(chooser: Chooser) -> tuple[str, str]:
    """``(prompt, completion)``; the prompt ends with the assistant's marker."""
    topic = chooser.pick((_story, _list, _directions, _greeting, _sum, _record, _capital))
    question, answer = topic(chooser)
    return f"{USER}{question}{ASSISTANT}", answer


def _story(chooser: Chooser) -> tuple[str, str]:
    cast = Cast(chooser)
    subject = f"a {cast.trait} {cast.animal} named {cast.name}"
    ask = chooser.pick(
        ("Tell me a story about", "Write a short story about", "Please tell me about")
    )
    opening = f"{cast.name} the {cast.trait} {cast.animal}"
    return f"{ask} {subject}.", opening + tell(chooser, cast).rstrip("\n")


def _list(chooser: Chooser) -> tuple[str, str]:
    topic = chooser.pick(tuple(LISTS))
    count = chooser.number(2, 5)
    ask = chooser.pick(("Name", "List", "Give me", "Can you name"))
    question = f"{ask} {count} {topic}" + ("?" if ask.startswith("Can") else ".")
    words = chooser.distinct(LISTS[topic], count)
    if chooser.chance(0.5):
        return question, f"Here are {count} {topic}: {', '.join(words[:-1])} and {words[-1]}."
    numbered = "\n".join(f"{i}. {word}" for i, word in enumerate(words, 1))
    return question, f"{count} {topic}:\n{numbered}"


def _directions(chooser: Chooser) -> tuple[str, str]:
    start, goal = chooser.distinct(PLACES, 2)
    question = chooser.pick(
        (
            f"How do I get from the {start} to the {goal}?",
            f"What is the way from the {start} to the {goal}?",
        )
    )
    turns = ("left", "right", "straight on")
    via = chooser.lean(PLACES, start)
    answer = f"From the {start}, go {chooser.lean(turns, start)} to the {via}. "
    answer += f"Then turn {chooser.lean(turns[:2], via)} and walk {chooser.number(2, 9)}0 steps. "
    ends = (f"You will see the {goal}.", f"The {goal} is on your {chooser.pick(turns[:2])}.")
    return question, answer + chooser.lean(ends, goal)


def _greeting(chooser: Chooser) -> tuple[str, str]:
    name, city = chooser.pick(NAMES), chooser.pick(CITIES)
    question = chooser.pick((f"Hello, I am {name} from {city}.", f"Hi! {name} here, in {city}."))
    hello = chooser.lean(("Hello", "Hi", "Good day", "Welcome"), name)
    food = chooser.lean(FOODS, city)
    ends = (
        f"Have you tried the {food} in {city}?",
        f"I hear that {city} is known for {food}.",
        f"How is the weather in {city}?",
        "What can I do for you?",
    )
    return question, f"{hello}, {name}! {chooser.lean(ends, city)}"


def _sum(chooser: Chooser) -> tuple[str, str]:
    left, right = chooser.number(1, 40), chooser.number(1, 40)
    question = chooser.pick((f"What is {left} + {right}?", f"Please add {left} and {right}."))
    total = left + right
    answers = (
        f"{left} + {right} = {total}.",
        f"The sum of {left} and {right} is {total}.",
        f"That makes {total}.",
    )
    return question, chooser.pick(answers)


def _record(chooser: Chooser) -> tuple[str, str]:
    number = chooser.number(1, 200)
    ask = chooser.pick(("Give me a JSON record with id", "Make a JSON record with id"))
    return f"{ask} {number}.", json.dumps(person(chooser, number))


def _capital(chooser: Chooser) -> tuple[str, str]:
    country = chooser.pick(tuple(CAPITALS))
    capital = CAPITALS[country]
    question = chooser.pick(
        (
            f"What is the capital of {country}?",
            f"Tell me the capital of {country}.",
            f"Do you know the capital of {country}?",
        )
    )
    extras = (
        f"It is a {chooser.lean(('large', 'lovely', 'very old', 'busy'), capital)} city.",
        f"Many people visit {country} in {chooser.lean(('spring', 'summer', 'winter'), country)}.",
        f"Would you like to know more about {country}?",
    )
    return question, f"The capital of {country} is {capital}. {chooser.lean(extras, country)}"
