"""The rules of the code that a machine can check: monopolies, layers, sizes, linters."""

import ast
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import ksi_hooks

PACKAGE = Path(ksi_hooks.__file__).parent
TOP = PACKAGE.parent
MAX_MODULE, MAX_FUNCTION = 250, 50
# A module imports only from its own room and from lower layers; rooms of one layer do not know each other.
LAYERS = (
    {"errors", "gate", "protocol", "checks", "proc"},
    {"files", "render", "run", "config"},
    {"locks"},
    {"environment"},
    {"registry", "tools", "slurm"},
    {"lifecycle", "install"},
    {"gc", "doctor"},
    {"hooks"},
    {"cli"},
)
MODULES = sorted(PACKAGE.rglob("*.py"))


def name(path):
    return str(path.relative_to(PACKAGE))


@cache
def tree(path):
    return ast.parse(path.read_text(), str(path))


def room(path):
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def imports(path):
    """Return the modules that a module imports, wherever it does, as dotted names."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def importing(library):
    return {name(p) for p in MODULES if any(i.split(".")[0] == library for i in imports(p))}


def calling(function):
    calls = ((p, n) for p in MODULES for n in ast.walk(tree(p)) if isinstance(n, ast.Call))
    return {name(p) for p, call in calls if ast.unparse(call.func) == function}


@pytest.mark.parametrize(
    ("library", "modules"),
    [
        ("subprocess", {"run.py"}),
        ("filelock", {"locks.py"}),
        ("jinja2", {"render.py"}),
        ("argparse", {"gc/main.py", *(name(p) for p in MODULES if room(p) == "cli")}),
        ("logging", set()),
        ("pickle", set()),
    ],
)
def test_libraries_with_one_user(library, modules):
    assert importing(library) <= modules


def test_only_what_talks_to_a_person_prints():
    assert {p for p in calling("print") if not p.startswith("cli/")} <= {"gc/main.py"}


@pytest.mark.parametrize(
    "function", ["eval", "exec", "os.system", "os.popen", "yaml.load", "time.ctime", "input"]
)
def test_functions_that_nobody_calls(function):
    assert calling(function) == set()


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_go_down(path):
    layer = next((number for number, rooms in enumerate(LAYERS) if room(path) in rooms), None)
    if path == PACKAGE / "__init__.py":
        assert imports(path) == set()
        return
    assert layer is not None, f"{room(path)} has no layer"
    allowed = {room(path), "__version__"}.union(*LAYERS[:layer])
    own = {i.split(".")[1] for i in imports(path) if i.startswith("ksi_hooks.")}
    assert own <= allowed


@pytest.mark.parametrize(
    "path", [p for p in MODULES if room(p) in {"lifecycle", "registry", "tools", "files", "run"}], ids=name
)
def test_variables_of_slurm_are_read_by_what_knows_slurm(path):
    strings = (
        n.value for n in ast.walk(tree(path)) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    )
    assert not [s for s in strings if s.startswith("SLURM_")]


def test_everything_is_caught_only_where_a_hook_ends():
    broad = {
        name(p)
        for p in MODULES
        for n in ast.walk(tree(p))
        if isinstance(n, ast.ExceptHandler) and (n.type is None or ast.unparse(n.type) == "Exception")
    }
    assert broad <= {"hooks/boundary.py", "hooks/task_prolog.py", "cli/main.py"}


def test_what_a_clean_up_catches_it_raises_again():
    for path in MODULES:
        for handler in ast.walk(tree(path)):
            if (
                isinstance(handler, ast.ExceptHandler)
                and handler.type
                and ast.unparse(handler.type) == "BaseException"
            ):
                assert isinstance(handler.body[-1], ast.Raise), name(path)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_sizes_and_docstrings(path):
    assert len(path.read_text().splitlines()) <= MAX_MODULE
    assert ast.get_docstring(tree(path)), "a module says in one sentence what it is for"
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < MAX_FUNCTION, node.name


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_public_functions_and_classes_say_what_they_are_for(path):
    bare = [
        node.name
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert bare == []


def tool(program):
    beside = Path(sys.executable).parent / program
    found = str(beside) if beside.exists() else shutil.which(program)
    if not found:
        pytest.skip(f"{program} is not installed")
    return found


@pytest.mark.parametrize("command", [["check", "--quiet"], ["format", "--check", "--quiet"]], ids=" ".join)
def test_ruff(real_programs, command):
    done = subprocess.run(
        [tool("ruff"), *command, "ksi_hooks", "tests"], cwd=TOP, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy(real_programs):
    done = subprocess.run([tool("mypy")], cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
