"""Templates of HTML pages: how every room reads its own."""

from jinja2 import Environment, PackageLoader, StrictUndefined


def html_templates(package: str) -> Environment:
    """Return the templates in the folder `templates` of a package.

    Values are escaped, unless they are `Markup`; a name without a value is an error.
    """
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
