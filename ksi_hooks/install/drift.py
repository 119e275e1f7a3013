"""Whether the installed hooks still are what the settings ask for."""

from pathlib import Path

from ksi_hooks.config import Settings
from ksi_hooks.install import apply, plan
from ksi_hooks.install.plan import Site


def site_of(file: Path, *, python: str, package: Path) -> Site | None:
    """Return the installation that a settings file belongs to; None when it lies somewhere else."""
    if file.parts[-len(plan.SETTINGS_FILE.parts) :] != plan.SETTINGS_FILE.parts:
        return None
    return Site(file.parents[len(plan.SETTINGS_FILE.parts) - 1], python, package)


def differences(site: Site, settings: Settings) -> list[str]:
    """Return one phrase for each hook that is missing or is not what `ksi install` would write now."""
    words = {apply.MADE: "is not installed", apply.CHANGED: "differs from what ksi install would write now"}
    states = ((hook.path, apply.state_of(hook)) for hook in plan.hooks(site, settings))
    return [f"{path} {words[state]}" for path, state in states if state in words]
