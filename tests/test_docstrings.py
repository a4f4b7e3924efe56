"""Public functions say what they take, give and raise, and their examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re

import pytest

import counterfoil as cf
from counterfoil import testing

FUNCTIONS = {name: getattr(cf, name) for name in cf.__all__ if inspect.isfunction(getattr(cf, name))}
FUNCTIONS["testing.assert_robust"] = testing.assert_robust
DONE = {"evaluate_collection"}  # the old name of `evaluate`


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_public_function_explains_its_arguments_result_and_errors(name: str) -> None:
    function = FUNCTIONS[name]
    text = inspect.getdoc(function) or ""
    arguments = [each for each in inspect.signature(function).parameters if each != "self"]
    assert all(f"\n{heading}:\n" in text for heading in ("Args", "Returns", "Raises", "Examples"))
    explained = re.findall(r"^    (\w+): ", text.partition("\nArgs:\n")[2].partition("\nReturns:\n")[0], re.MULTILINE)
    assert explained == arguments


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - DONE))
def test_the_example_of_every_public_function_runs(name: str) -> None:
    function = FUNCTIONS[name]
    module = importlib.import_module(function.__module__)
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    (example,) = finder.find(function, name, module=module, globs=dict(vars(module)))
    assert example.examples
    assert runner.run(example).failed == 0
