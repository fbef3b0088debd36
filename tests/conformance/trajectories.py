"""Holds trajectories against the types of the atif package; each argument is a file of one."""

import json
import sys

from atif import Trajectory
from pydantic import ValidationError

failed = 0
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        whole = json.load(file)
    try:
        read = Trajectory.model_validate(whole)
    except ValidationError as error:
        failed += 1
        print(f"{path}: {error}", file=sys.stderr)
        continue
    # What it knows is written as it was read: no field is lost or taken for another.
    if json.loads(read.model_dump_json(exclude_none=True)) != whole:
        failed += 1
        print(f"{path}: it is not read as it was written", file=sys.stderr)

print(f"{len(sys.argv) - 1 - failed} passed, {failed} failed")
sys.exit(1 if failed else 0)
