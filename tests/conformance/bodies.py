"""Holds request bodies against the types of the openai package, those of both protocols.

Bodies come one a line on standard input, or one a file from the folders that are named. A field that
the types do not know is wrong as well, but for `reasoning_content` and its like, other servers' words
for reasoning, which go back only to a server that said them.
"""

import inspect
import json
import pathlib
import sys

import openai.types.chat as chat
import openai.types.chat.completion_create_params as chat_params
import openai.types.responses as responses
import openai.types.responses.response_create_params as responses_params
import openai.types.responses.response_input_param as responses_input
import openai.types.shared_params as shared
from pydantic import TypeAdapter, ValidationError
from typing_extensions import is_typeddict

REASONING = ["reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks"]


def walked(value):
    """The value with its lists read to their ends: they are validated only as they are read."""
    if isinstance(value, dict):
        return {key: walked(part) for key, part in value.items()}
    if value is None or isinstance(value, (str, int, float)):
        return value
    return [walked(part) for part in value]


for module in (chat, chat_params, responses, responses_params, responses_input, shared):
    for _, known in inspect.getmembers(module, is_typeddict):
        known.__pydantic_config__ = {"extra": "forbid"}
by_chat = TypeAdapter(chat_params.CompletionCreateParamsStreaming)
by_responses = TypeAdapter(responses_params.ResponseCreateParamsStreaming)


def bodies():
    """Each body with its name."""
    if len(sys.argv) == 1:
        for number, line in enumerate(sys.stdin, 1):
            yield f"body {number}", json.loads(line)
    for folder in sys.argv[1:]:
        for path in sorted(pathlib.Path(folder).iterdir()):
            yield path.name, json.loads(path.read_bytes())


def told(error):
    """What is wrong, without the names of unions, which are pages long."""
    lines = []
    for one in error.errors():
        place = ".".join(str(part) for part in one["loc"] if "[" not in str(part))
        lines.append(f"{place}: {one['msg']}")
    return list(dict.fromkeys(lines))


passed = failed = 0
for name, body in bodies():
    if "input" in body:
        adapter = by_responses
    else:
        adapter = by_chat
        for message in body["messages"]:
            for field in REASONING:
                message.pop(field, None)
            for call in message.get("tool_calls", []):
                # The signature of Google's models.
                call.pop("extra_content", None)
    try:
        walked(adapter.validate_python(body))
        passed += 1
    except ValidationError as error:
        failed += 1
        print(f"{name} is wrong:")
        for one in told(error)[:10]:
            print(f"  {one}")
print(f"bodies: {passed} passed, {failed} failed")
sys.exit(failed > 0 or passed == 0)
