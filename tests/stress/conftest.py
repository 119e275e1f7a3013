"""The fixtures of the layer with fakes serve here too."""

from fakes.conftest import other_tenant, shared_python, site, tenant

__all__ = ["other_tenant", "shared_python", "site", "tenant"]
