# SPDX-License-Identifier: Apache-2.0
"""JSON records: lists of people, orders, and key=value lines turned into JSON."""

import json

from models.text.chooser import Chooser
from models.text.words import CITIES, COLOURS, JOBS, NAMES, THINGS


def record(chooser: Chooser) -> tuple[str, str]:
    """``(prompt, completion)`` of one of three forms of record."""
    form = chooser.pick((_people, _order, _converted))
    return form(chooser)


def person(chooser: Chooser, number: int) -> dict:
    """One person; the city leans on the name, and the job and the tags on the city."""
    name = chooser.pick(NAMES)
    city = chooser.lean(CITIES, name)
    fields = {"id": number, "name": name, "city": city, "age": chooser.number(20, 59)}
    if chooser.chance(0.7):
        fields["job"] = chooser.lean(JOBS, city)
    fields["tags"] = [chooser.lean(COLOURS, f"{city}{i}") for i in range(chooser.number(1, 3))]
    fields["active"] = chooser.chance(0.7)
    return fields


def _people(chooser: Chooser) -> tuple[str, str]:
    first = chooser.number(1, 90)
    lines = [json.dumps(person(chooser, first + i)) for i in range(chooser.number(2, 4))]
    return lines[0], "\n" + "\n".join(lines[1:]) + "\n"


def _order(chooser: Chooser) -> tuple[str, str]:
    item, name = chooser.pick(THINGS), chooser.pick(NAMES)
    head = json.dumps({"order": chooser.number(100, 999), "item": item, "buyer": name})[:-1] + ","
    notes = ("call first", "a gift", "leave it outside", "no hurry", "")
    rest = {
        "colour": chooser.lean(COLOURS, item),
        "count": chooser.number(1, 12),
        "ship": {"city": chooser.lean(CITIES, name), "paid": chooser.chance(0.75)},
        "note": chooser.lean(notes, item),
    }
    return head, " " + json.dumps(rest)[1:] + "\n"


def _converted(chooser: Chooser) -> tuple[str, str]:
    name, city, age = chooser.pick(NAMES), chooser.pick(CITIES), chooser.number(20, 59)
    fields = {
        "name": name,
        "city": city,
        "age": age,
        "key": f"{name[0].lower()}{age}",
        "group": chooser.lean(("a", "b", "c", "d"), city),
        "job": chooser.lean(JOBS, name),
    }
    return f"name={name}; city={city}; age={age} =>", " " + json.dumps(fields) + "\n"
