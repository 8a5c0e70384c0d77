"""clients.py DOCUMENT ANSWERS DIR : generates two clients from the OpenAPI document into DIR, and has them read the answers.

ANSWERS has a JSON object in each line, with `operation`, `status`, `type` and `body`. What a client has read is written
again, and must be the same JSON, apart from the form of times.
"""
import collections
import compileall
import importlib
import json
import os
import re
import subprocess
import sys

TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)")


def plain(value):
    """The same JSON value with times to the second."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return TIME.sub(r"\1Z", value) if isinstance(value, str) else value


def run(*words):
    subprocess.run([sys.executable, "-W", "ignore", "-m", *words], check=True, stdout=subprocess.DEVNULL)


class Functions:
    """The client of openapi-python-client."""

    def __init__(self, document, place, operations):
        settings = os.path.join(os.path.dirname(os.path.abspath(__file__)), "generator.json")
        run("openapi_python_client", "generate", "--path", document, "--output-path", os.path.join(place, "functions"),
            "--meta", "none", "--overwrite", "--fail-on-warning", "--config", settings)
        self.client = importlib.import_module("functions.client").Client(
            base_url="https://localhost", raise_on_unexpected_status=True)
        self.modules = {}
        for tag in {operation["tags"][0] for operation in operations.values()}:
            for name in os.listdir(os.path.join(place, "functions", "api", tag)):
                self.modules[name.removesuffix(".py").replace("_", "")] = f"functions.api.{tag}.{name.removesuffix('.py')}"

    def read(self, answer):
        import httpx
        module = importlib.import_module(self.modules[answer["operation"].lower()])
        response = httpx.Response(answer["status"], content=answer["body"].encode(), headers={"content-type": answer["type"]})
        read = module._parse_response(client=self.client, response=response)
        return read.to_dict() if "json" in answer["type"] else None


class Types:
    """The types of datamodel-code-generator. Those of answers without a name of their own are found by their members."""

    def __init__(self, document, place, operations):
        run("datamodel_code_generator", "--input", document, "--input-file-type", "openapi",
            "--openapi-scopes", "schemas", "paths", "--use-operation-id-as-name", "--extra-fields", "allow",
            "--output-model-type", "pydantic_v2.BaseModel", "--target-python-version", "3.11", "--formatters", "builtin",
            "--output", os.path.join(place, "types_of_answers.py"))
        self.types, self.operations = importlib.import_module("types_of_answers"), operations
        self.common = json.load(open(document))["components"]["responses"]

    def type(self, answer):
        response = self.operations[answer["operation"]]["responses"][str(answer["status"])]
        if "$ref" in response:
            response = self.common[response["$ref"].rpartition("/")[2]]
        schema = response["content"][answer["type"]]["schema"]
        if "$ref" in schema:
            return getattr(self.types, schema["$ref"].rpartition("/")[2])
        prefix = f"{answer['operation'][0].upper()}{answer['operation'][1:]}Response"
        named = [getattr(self.types, name) for name in dir(self.types) if name.startswith(prefix)]
        return next(one for one in named if {field.alias or name for name, field in one.model_fields.items()}
                    == set(schema.get("properties", {})))

    def read(self, answer):
        if "json" not in answer["type"]:
            return None
        read = self.type(answer).model_validate_json(answer["body"])
        return json.loads(read.model_dump_json(by_alias=True, exclude_unset=True))


def main(document, answers, place):
    os.makedirs(place, exist_ok=True)
    place = os.path.abspath(place)
    sys.path.insert(0, place)
    paths = json.load(open(document))["paths"]
    operations = {operation["operationId"]: operation for path in paths.values() for operation in path.values()}
    with open(answers) as file:
        lines = set(file)
    is_right = True
    for kind in (Functions, Types):
        client = kind(document, place, operations)
        is_right &= bool(compileall.compile_dir(place, quiet=1))
        read, faults = 0, collections.Counter()
        for line in lines:
            answer = json.loads(line)
            try:
                found = client.read(answer)
                if "json" in answer["type"] and plain(found) != plain(json.loads(answer["body"])):
                    raise ValueError(f"differs: {found}")
                read += 1
            except Exception as error:
                faults[f"{answer['operation']} {answer['status']}: {error!r}"[:300]] += 1
        print(f"{kind.__doc__.split('.')[0]}: {read} different answers read, {sum(faults.values())} not")
        for fault, count in faults.most_common(20):
            print(f"  {count} x {fault}")
        is_right &= not faults
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
