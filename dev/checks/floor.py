"""The figures of Benchmarks/floor.json must be figures that deploy/bench compares, so that a renamed one is noticed."""
import ast
import json
import re
from rules import read, rule

FLOOR, BENCH = "Benchmarks/floor.json", "deploy/bench"


def compared(text):
    """Returns the compared figures of each benchmark in the list of deploy/bench: a pattern of the label, and what is better."""
    found = {}
    for call in ast.walk(ast.parse(text)):
        if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Benchmark"):
            continue
        name = call.args[0].value.removesuffix("/run").replace("/", "-")
        found[name] = [
            ("".join(".+" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{\d+\})", figure.elts[0].value)),
             figure.elts[3].id.lower())
            for figure in call.args[3].elts if len(figure.elts) > 3]
    return found


@rule
def floor(project):
    if FLOOR not in project.files:
        return
    listed = compared(read(project.root, BENCH))
    text = read(project.root, FLOOR)
    for kept in json.loads(text)["figures"]:
        line = next((number for number, row in enumerate(text.split("\n"), 1) if json.dumps(kept["figure"]) in row), 1)
        better = [better for label, better in listed.get(kept["benchmark"], []) if re.fullmatch(label, kept["figure"])]
        if not better:
            yield FLOOR, line, f"{BENCH} compares no figure `{kept['figure']}` of {kept['benchmark']}: take the floor again"
        elif kept["better"] not in better:
            yield FLOOR, line, f"`{kept['figure']}`: {BENCH} says that {better[0]} is better"
