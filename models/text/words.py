# SPDX-License-Identifier: Apache-2.0
"""Word lists shared by the kinds of text."""

NAMES = tuple("Ada Ben Cleo Dan Eva Finn Gus Hana Ida Jon Kira Lou Maya Ned Olga Pia".split())
ANIMALS = tuple("badger crow deer stoat hen hare mole newt pony seal toad wren".split())
TRAITS = tuple("bold calm kind fair grumpy quick lazy merry polite shy tall wise".split())
PLACES = tuple("lake hill barn beach cellar tower mill meadow harbour orchard square inn".split())
FOODS = tuple("plums toast beans pie noodles pears porridge corn jam walnuts".split())
THINGS = tuple("kite drum lantern ladder button mirror basket whistle ring wheel".split())
COLOURS = tuple("red blue green grey white pink brown gold".split())
CITIES = tuple("Bergen Turin Lyon Porto Graz Cork Gdansk Ghent Malmo Bern".split())
JOBS = tuple("baker pilot nurse painter farmer teacher sailor tailor".split())
WEATHER = tuple("rain snow thunder fog wind".split())
VARIABLES = tuple("count total items width score limit offset rows label cache".split())
VERBS = tuple("add load find merge scale check split read".split())
CAPITALS = {
    "Japan": "Tokyo",
    "Kenya": "Nairobi",
    "Peru": "Lima",
    "Cuba": "Havana",
    "Egypt": "Cairo",
    "Norway": "Oslo",
    "Spain": "Madrid",
    "Poland": "Warsaw",
    "Greece": "Athens",
    "Canada": "Ottawa",
    "Chile": "Santiago",
    "Ghana": "Accra",
}
