"""Holds request bodies, one a line on standard input, against the types of the openai package.

A field that the types do not know is wrong as well, but for `reasoning_content`, other servers' word
for reasoning, which goes back only to a server that said it.
"""

import inspect
import json
import sys

import openai.types.chat as chat
import openai.types.chat.completion_create_params as params
import openai.types.shared_params as shared
from pydantic import TypeAdapter, ValidationError
from typing_extensions import is_typeddict


def walked(value):
    """The value with its lists read to their ends: they are validated only as they are read."""
    if isinstance(value, dict):
        return {key: walked(part) for key, part in value.items()}
    if value is None or isinstance(value, (str, int, float)):
        return value
    return [walked(part) for part in value]


for module in (chat, params, shared):
    for _, known in inspect.getmembers(module, is_typeddict):
        known.__pydantic_config__ = {"extra": "forbid"}
adapter = TypeAdapter(params.CompletionCreateParamsStreaming)

passed = failed = 0
for number, line in enumerate(sys.stdin, 1):
    body = json.loads(line)
    for message in body["messages"]:
        message.pop("reasoning_content", None)
    try:
        walked(adapter.validate_python(body))
        passed += 1
    except ValidationError as error:
        failed += 1
        print(f"body {number} is wrong:")
        for one in error.errors()[:10]:
            print(f"  {'.'.join(map(str, one['loc']))}: {one['msg']}")
print(f"bodies: {passed} passed, {failed} failed")
sys.exit(failed > 0)
