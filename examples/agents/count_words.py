"""A tool of an agent: arguments as JSON come in, the result goes out."""

import json
import sys

print(len(json.load(sys.stdin)["text"].split()))
