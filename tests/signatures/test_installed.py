# SPDX-License-Identifier: Apache-2.0
"""The comparison with what Python imports, on a module that every environment has."""

import pytest
from callcheck.calls import Reached
from callcheck.installed import normal_schema, sglang_difference
from callcheck.kernel_facts import functions_in, library_facts
from callcheck.signature import from_text


def reached(name: str, parameters: str) -> Reached:
    return Reached("fractions", name, from_text(parameters), "here", 1, None)


@pytest.mark.parametrize(
    "name, parameters",
    [
        ("Fraction.limit_denominator", "max_denominator=1"),
        ("Fraction.from_float", "f"),
        ("Decimal.is_nan", ""),
    ],
)
def test_the_imported_callee_is_what_the_sources_say(name, parameters):
    assert sglang_difference(reached(name, parameters)) == []


@pytest.mark.parametrize("parameters", ["", "max_denominator", "max=1", "max_denominator=1, *, a"])
def test_another_signature_is_a_difference(parameters):
    [text] = sglang_difference(reached("Fraction.limit_denominator", parameters))
    assert "expected" in text and "max_denominator=1000000" in text


def test_schemas_are_compared_without_the_names_that_torch_gives():
    registered = "walk(Tensor! out, Tensor tree, Tensor? coins) -> ()"
    told = "walk(Tensor($0! -> ) out, Tensor tree, Tensor? coins) -> ()"
    assert normal_schema(told) == normal_schema(registered) == registered
    assert normal_schema(told.replace("($0! -> )", "")) != registered


def test_facts_of_a_module_and_a_library():
    source = (
        "def walk(out, tree: T, n=1.0):\n    torch.ops.sgl_kernel.walk.default(out)\nrun = walk"
    )
    fact = {"parameters": "out, tree, n=1.0", "operator": "walk"}
    assert functions_in(source, {"run", "walk"}) == {"run": fact, "walk": fact}
    with pytest.raises(ValueError, match="gone"):
        functions_in(source, {"gone"})
    library = b"\0walk(Tensor! out) -> ()\0Expected 'out' to be of type int (torch.int32).\n\0"
    assert library_facts(library, {"walk"}) == {
        "operators": {"walk": "walk(Tensor! out) -> ()"},
        "dtypes": {"out": "torch.int32"},
    }
    with pytest.raises(ValueError, match="one schema of run"):
        library_facts(library, {"run"})
