"""The types of the client are those of the API document."""

import json
import typing
import unittest
from pathlib import Path

import switchboard_client
from signed import CALLBACKS, FOLDER
from switchboard_client import types

DOCUMENT = json.loads((FOLDER / "openapi.json").read_text("utf8"))
SCHEMAS = DOCUMENT["components"]["schemas"]
NAMES = json.loads((FOLDER / "types.json").read_text("utf8"))
KINDS = {str: "string", int: "integer", bool: "boolean", dict: "object", list: "array"}
KINDS_OF_CALLBACKS = {
    "report": "DeliveryReport",
    "inbound": "InboundMessage",
    "lookup": "LookupResult",
    "sender": "SenderNotification",
}


def resolve(schema):
    """The alternatives of a schema, without references."""
    if "$ref" in schema:
        return resolve(SCHEMAS[schema["$ref"].split("/")[-1]])
    choices = schema.get("anyOf") or schema.get("oneOf")
    return [one for choice in choices for one in resolve(choice)] if choices else [schema]


def kinds(schema):
    """The JSON types of the values of a schema."""
    found = set()
    for choice in resolve(schema):
        of_choice = choice["type"]
        found |= {of_choice} if isinstance(of_choice, str) else set(of_choice)
    return found


def values(schema):
    """The values of a schema that lists them, or None."""
    choices = [one for one in resolve(schema) if one["type"] != "null"]
    if not all("enum" in one for one in choices):
        return None
    return {value for one in choices for value in one["enum"] if value is not None}


def fields_of(name):
    """The properties of a schema, or the parameters of an operation in the query, and the required ones."""
    if name in SCHEMAS:
        choices = resolve(SCHEMAS[name])
        required = set.intersection(*(set(one.get("required", [])) for one in choices))
        found = {}
        for choice in choices:
            for field, schema in choice["properties"].items():
                found.setdefault(field, {"anyOf": []})["anyOf"].append(schema)
        return found, required
    operations = [one for path in DOCUMENT["paths"].values() for one in path.values()]
    [operation] = [one for one in operations if one["operationId"] == name]
    parameters = [one for one in operation["parameters"] if one["in"] == "query"]
    return {one["name"]: one["schema"] for one in parameters}, set()


def arms(hint):
    """The alternatives of a type."""
    if typing.get_origin(hint) in (typing.Union, type(str | int)):
        return [arm for one in typing.get_args(hint) for arm in arms(one)]
    return [hint]


def kinds_of_hint(hint):
    found = set()
    for arm in arms(hint):
        if typing.get_origin(arm) is typing.Literal:
            found |= {KINDS[type(value)] for value in typing.get_args(arm)}
        elif arm is type(None):
            found.add("null")
        else:
            found.add("object" if typing.is_typeddict(arm) else KINDS[typing.get_origin(arm) or arm])
    return found


def values_of_hint(hint):
    return {value for arm in arms(hint) for value in typing.get_args(arm)}


class Types(unittest.TestCase):
    def test_the_fields_are_those_of_the_document(self):
        for name, of_client in NAMES.items():
            if of_client is None:
                continue
            kind = getattr(types, of_client)
            # A keyword of Python gets an underscore.
            hints = {field.removesuffix("_"): hint for field, hint in typing.get_type_hints(kind).items()}
            always = {field.removesuffix("_") for field in kind.__required_keys__}
            fields, required = fields_of(name)
            with self.subTest(of_client):
                self.assertEqual(hints.keys(), fields.keys())
            for field in hints.keys() & fields.keys():
                with self.subTest(f"{of_client}.{field}"):
                    self.check_field(hints[field], fields[field], field in always, field in required)

    def check_field(self, hint, schema, is_always, is_required):
        found, expected = kinds_of_hint(hint), kinds(schema)
        self.assertLessEqual(found, expected)
        is_open = not is_required or "null" in expected
        self.assertEqual(not is_always or "null" in found, is_open, "null or absent")
        listed = values(schema)
        if listed is not None and all(isinstance(value, str) for value in listed):
            self.assertEqual(values_of_hint(hint), listed)

    def test_every_schema_has_a_type(self):
        used = set()

        def walk(value):
            if isinstance(value, list):
                for one in value:
                    walk(one)
            elif isinstance(value, dict):
                name = value.get("$ref", "").split("/")[-1]
                if name in SCHEMAS and name not in used:
                    used.add(name)
                    walk(SCHEMAS[name])
                for one in value.values():
                    walk(one)

        operations = [one for path in DOCUMENT["paths"].values() for one in path.values()]
        for operation in operations:
            walk(operation.get("requestBody"))
            walk(operation["responses"]["200"])
        for path in DOCUMENT["webhooks"].values():
            walk([operation["requestBody"] for operation in path.values()])
        objects = {name for name in used if any("properties" in one for one in resolve(SCHEMAS[name]))}
        self.assertEqual(objects - NAMES.keys(), set())

    def test_the_callbacks_have_the_fields_of_their_kind(self):
        for kind, data in CALLBACKS.items():
            self.assertEqual(data.keys(), fields_of(KINDS_OF_CALLBACKS[kind])[0].keys(), kind)

    def test_the_package_has_its_types(self):
        self.assertTrue((Path(switchboard_client.__file__).parent / "py.typed").exists())


if __name__ == "__main__":
    unittest.main()
