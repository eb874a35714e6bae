# SPDX-License-Identifier: Apache-2.0
"""Draft trees: which one is shown, and how."""

import json

import pytest
from demo.draft_tree import DraftTree, most_telling, read_trace
from demo.failure import Failure
from demo.tree_drawing import draw_tree, quote

WORDS = ["The", " cat", " dog", " sat", " ran", "\n", '"', " on", "!"]


def tree(accepted=(0, 2, 4), bonus=8) -> DraftTree:
    """Two levels of choices below the root, and one node of depth three."""
    return DraftTree(
        context=(7,),
        tokens=(0, 1, 2, 3, 4, 5, 6),
        parents=(-1, 0, 0, 1, 2, 2, 4),
        log_q=(0.0, -0.5, -1.25, -0.1, -0.7, -0.9, -10.5),
        accepted=accepted,
        bonus=bonus,
    )


def drawn(*args, **kwargs) -> str:
    return "\n".join(draw_tree(tree(*args, **kwargs), WORDS.__getitem__)) + "\n"


def test_a_heavy_line_runs_from_the_root_to_the_bonus():
    assert drawn() == (
        """\
token           log q     path
'The'                            root: the last token so far
┠─ ' cat'       -0.50    -0.50
┃  └─ ' sat'    -0.10    -0.60
┗━ ' dog'       -1.25    -1.25   accepted
   ┡━ ' ran'    -0.70    -1.95   accepted
   │  ┠─ '"'   -10.50   -12.45
   │  ┗━ '!'                     bonus: the target's own choice
   └─ '\\n'      -0.90    -2.15
"""
    )


def test_a_path_through_first_children_and_a_bonus_below_a_leaf():
    assert drawn(accepted=(0, 1, 3)) == (
        """\
token           log q     path
'The'                            root: the last token so far
┡━ ' cat'       -0.50    -0.50   accepted
│  ┗━ ' sat'    -0.10    -0.60   accepted
│     ┗━ '!'                     bonus: the target's own choice
└─ ' dog'       -1.25    -1.25
   ├─ ' ran'    -0.70    -1.95
   │  └─ '"'   -10.50   -12.45
   └─ '\\n'      -0.90    -2.15
"""
    )


def test_nothing_accepted_leaves_the_bonus_below_the_root():
    lines = drawn(accepted=(0,)).splitlines()
    assert lines[-1].startswith("┗━ '!'")
    assert [line[0] for line in lines[2:-1]] == ["┠", "┃", "┠", "┃", "┃", "┃"]


def test_an_answer_that_ended_in_the_tree_has_no_bonus():
    assert "bonus" not in drawn(accepted=(0, 1), bonus=None)


def test_colour_changes_nothing_but_the_style():
    plain = draw_tree(tree(), WORDS.__getitem__)
    bold = ("root", "accepted", "bonus")
    styles = ["1;32" if any(word in line for word in bold) else "2" for line in plain]
    assert draw_tree(tree(), WORDS.__getitem__, colour=True) == [
        f"\x1b[{style}m{line}\x1b[0m" for style, line in zip(styles, plain, strict=True)
    ]


def test_long_tokens_are_cut():
    assert quote("x" * 22) == "'" + "x" * 22 + "'"
    assert quote("x" * 23) == "'" + "x" * 21 + "…'"


def test_what_a_chain_would_have_accepted():
    assert tree(accepted=(0, 2, 4)).chain_accepted == 0
    assert tree(accepted=(0, 1, 3)).chain_accepted == 2
    assert tree(accepted=(0,)).chain_accepted == 0


def test_the_tree_that_gained_most_over_a_chain_is_shown():
    chain, gain, end = tree((0, 1, 3)), tree((0, 2, 4)), tree((0, 2, 4, 6), bonus=None)
    assert most_telling([chain, gain, end, gain]) == 1
    assert most_telling([tree((0,)), chain]) == 1
    assert most_telling([end]) == 0


def test_a_trace_is_read_back(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text(json.dumps(vars(tree())) + "\n" + json.dumps(vars(tree((0,)))) + "\n")
    assert read_trace(path) == [tree(), tree((0,))]


@pytest.mark.parametrize("text", ["", "{", '{"tokens": [1]}\n', "[]\n"])
def test_a_trace_without_trees_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "trace.jsonl"
    path.write_text(text)
    with pytest.raises(Failure, match=r"^trace: expected .*, found .+$"):
        read_trace(path)
    with pytest.raises(Failure, match=r"^trace: expected .*, found .+$"):
        read_trace(tmp_path / "missing")
