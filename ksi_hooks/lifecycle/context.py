"""What every action on a cluster needs: whose it is, the settings, the registry, the directories."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ksi_hooks.config import Settings
from ksi_hooks.environment import CLUSTER_MARK, base_environment
from ksi_hooks.lifecycle.userdir import UserDir
from ksi_hooks.registry.store import Registry
from ksi_hooks.run import Tools


@dataclass(frozen=True)
class Context:
    """One user on one node."""

    settings: Settings
    registry: Registry
    user_dir: UserDir
    uid: int
    node: str
    environ: Mapping[str, str]  # the job's: wishes are looked up in it, nothing is passed on unseen

    @classmethod
    def make(cls, settings: Settings, node: str, environ: Mapping[str, str]) -> "Context":
        """Prepare for the calling user; raises KsiError when registry or run directory cannot be used."""
        registry = Registry.of(settings)
        registry.require_usable()
        uid = os.getuid()
        return cls(settings, registry, UserDir.make(settings, uid), uid, node, environ)

    def tools(self) -> Tools:
        """Return the programs with the user's environment, for questions."""
        path = self.settings.tools_path
        return Tools(path, base_environment(path, self.uid, self.environ))

    def tools_for(self, cluster: str) -> Tools:
        """Return the programs for work on one cluster: logged."""
        tools = self.tools()
        return Tools(tools.path, tools.environment, self.user_dir.log_file(cluster))

    def creating_tools(self, cluster: str) -> Tools:
        """Return the programs for making a cluster: logged, and marked so that a deleter finds all they
        start.
        """
        return self.tools_for(cluster).extended(**{CLUSTER_MARK: cluster})
