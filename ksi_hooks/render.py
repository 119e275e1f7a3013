"""Rendering templates: the only user of Jinja2; values reach YAML and JSON through the tojson filter."""

from pathlib import Path
from typing import Any

import jinja2

from ksi_hooks.errors import ConfigError


def render(name: str, values: dict[str, Any]) -> str:
    """Render one of the package's templates."""
    return _environment(jinja2.PackageLoader("ksi_hooks")).get_template(name).render(values)


def render_file(path: Path, values: dict[str, Any]) -> str:
    """Render a template of the site's or a user's; raises ConfigError with the file and the line."""
    environment = _environment(jinja2.FileSystemLoader(path.parent))
    try:
        return environment.get_template(path.name).render(values)
    except jinja2.TemplateNotFound as error:
        raise ConfigError(f"no such template: {path}", hint="set kind_config in ksi.yaml") from error
    except jinja2.TemplateError as error:
        line = f":{error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
        raise ConfigError(f"template {path}{line}: {error}", hint="mend the template") from error


def _environment(loader: jinja2.BaseLoader) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    environment.filters["sh"] = _shell_quoted
    # Jinja's own tojson makes text safe for HTML (\u003c); YAML wants the plain form.
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "sort_keys": True}
    return environment


def _shell_quoted(value: object) -> str:
    import shlex

    return shlex.quote(str(value))
