"""Checks that each line of each given FILE.jsonl matches docs/train-log.schema.json."""
import json
import os
import sys

import jsonschema

SCHEMA = os.path.join(os.path.dirname(__file__), "../../docs/train-log.schema.json")
with open(SCHEMA, encoding="utf-8") as f:
    schema = json.load(f)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as f:
        lines = f.read().splitlines()
    assert lines, name
    for line in lines:
        validator.validate(json.loads(line))
