"""The command line of the benchmarks: noop, registry, cluster, or all of them."""

import signal
import sys
from importlib import import_module
from pathlib import Path

from testbed import cache, command

from bench import machine
from ksi_hooks.errors import KsiError

NAMES = ("noop", "registry", "cluster")
EVERYTHING = {"noop": ["--rounds", "10"], "registry": [], "cluster": []}
USAGE = f"""usage: tests/bench/run [--data DIR] [{"|".join(NAMES)} [OPTIONS]]

Without a name: all of them. `tests/bench/run NAME --help` tells the options.
--data DIR   where rows (CSV) and summaries (JSON) go; default: bench/ in the testbed's cache
"""


def main() -> int:
    """Run what was asked for; errors are one message and status 1."""
    words = sys.argv[1:]
    data = cache.default_root() / "bench"
    if words[:1] == ["--data"] and len(words) > 1:
        data, words = Path(words[1]).absolute(), words[2:]
    if words and words[0] not in NAMES:
        asked = words[0] in ("-h", "--help")
        print(USAGE, end="", file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # sites and clusters end with us
    chosen = {words[0]: words[1:]} if words else EVERYTHING
    try:
        for name, options in chosen.items():
            import_module(f"bench.{name}").main(options, data)
            print()
        print(machine.shown(machine.facts()))
        print(f"rows and summaries: {data}")
    except (command.TestbedError, KsiError) as error:
        print(f"bench: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
