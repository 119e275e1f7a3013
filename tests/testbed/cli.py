"""The command line of the testbed: build, start, stop, status, count, compare, env."""

import argparse
import sys
from pathlib import Path

from testbed import build, cache, census, command, podman, versions
from testbed.slurm import Site

STATE_DIR = Path("/run/ksi-testbed-site")
DESCRIPTION = """Real Kubernetes, Podman and Slurm on this machine, apart from what it has installed.
Everything built is kept in $KSI_TESTBED_CACHE, or ~/.cache/ksi-testbed."""


def parser() -> argparse.ArgumentParser:
    """The arguments of all subcommands."""
    top = argparse.ArgumentParser(prog="testbed", description=DESCRIPTION)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    made = commands.add_parser("build", help="build what is missing; a second run takes seconds")
    made.add_argument(
        "part",
        nargs="?",
        choices=("all", "slurm"),
        default="all",
        help="all (default): programs, images, Podman and Slurm; slurm: only the packages of Slurm",
    )
    start = commands.add_parser("start", help="start munged, slurmctld and one slurmd per node")
    start.add_argument("--nodes", default="n1", metavar="A,B", help="names of the Slurm nodes (default: n1)")
    start.add_argument("--cpus", type=int, default=2, metavar="N", help="CPUs of each node (default: 2)")
    start.add_argument(
        "--conf-line",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a further line of slurm.conf, such as TaskProlog=/path; can be given several times",
    )
    stop = commands.add_parser("stop", help="end the jobs and daemons of the site")
    status = commands.add_parser("status", help="tell which daemons run; status 1 when none does")
    count = commands.add_parser("count", help="list all that a cluster could leave on this machine")
    count.add_argument("--prefix", type=Path, required=True, metavar="DIR", help="where its files lie")
    compare = commands.add_parser("compare", help="lists side by side; status 1 when something is left")
    compare.add_argument("lists", type=Path, nargs=3, metavar=("BEFORE", "DURING", "AFTER"))
    compare.add_argument("--job", type=int, metavar="ID", help="leave out clusters of other jobs")
    env = commands.add_parser("env", help="print export lines for a shell that uses the testbed")
    for one in (start, stop, status, env):
        one.add_argument(
            "--state-dir",
            type=Path,
            default=STATE_DIR,
            metavar="DIR",
            help=f"where the site's files lie (default: {STATE_DIR})",
        )
    return top


def main() -> int:
    """Run a subcommand; errors are one message and status 1."""
    arguments = parser().parse_args()
    try:
        return dispatch(arguments)
    except command.TestbedError as e:
        print(f"testbed: error: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def dispatch(arguments: argparse.Namespace) -> int:
    """Do what was asked for."""
    root = cache.default_root()
    if arguments.command == "build":
        if arguments.part == "slurm":
            build.slurm(root)
        else:
            build.everything(root)
        return 0
    if arguments.command == "count":
        print(census.listing(census.everything(podman.bin_dir(root) / "podman", arguments.prefix)))
        return 0
    if arguments.command == "compare":
        lists = [census.parse(file.read_text(encoding="utf-8")) for file in arguments.lists]
        left = census.left(lists[0], lists[2], ours=lambda c: arguments.job in (None, census.job_of(c)))
        print(census.table(*lists, left))
        return 1 if left else 0
    state_dir = arguments.state_dir.absolute()
    if arguments.command == "env":
        print(environment(root, state_dir), end="")
        return 0
    if arguments.command == "start":
        nodes = [name for name in arguments.nodes.split(",") if name]
        Site(state_dir, nodes=nodes, cpus=arguments.cpus, slurm_conf_lines=arguments.conf_line).start()
    site = Site(state_dir)
    if arguments.command == "stop":
        site.stop()
        return 0
    running = site.running()
    print(f"{state_dir}: {' '.join(running) or 'nothing runs'}")
    return 0 if running else 1


def environment(root: Path, state_dir: Path) -> str:
    """The export lines for a shell."""
    lines = [
        f'export PATH="{podman.bin_dir(root)}:$PATH"',
        "export KIND_EXPERIMENTAL_PROVIDER=podman",
        f"export KSI_TESTBED_NODE_IMAGE={versions.NODE_IMAGE}",
    ]
    lines += [f"export {name}={value}" for name, value in Site(state_dir).env.items()]
    return "\n".join(lines) + "\n"
