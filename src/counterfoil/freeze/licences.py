"""Which licences let an edited picture be passed on."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FREE = re.compile(
    r"(cc-?0|cc-zero|cc-by(-nc)?(-sa)?|cc-pdm|cc-pddc|pdm|public-domain(-mark|-dedication)?|pddl|odc-by|odbl|gfdl"
    r"|apache|mit|0?bsd|unlicense|wtfpl|cdla-permissive|cdla-sharing|artistic|copyleft|free-art-licence|lal)"
    r"(-[0-9]+(-[0-9]+)*)?(-clause)?(-license|-licence)?(-(deed|unported|international|generic|or-later|only))?"
)
_CREATIVE_COMMONS = re.compile(r"creativecommons\.org/(?:licenses|publicdomain)/([a-z-]+)")
_SPOKEN = {
    "zero": "cc0",
    "mark": "pdm",
    "attribution-sharealike": "cc-by-sa",
    "attribution-noncommercial": "cc-by-nc",
    "attribution-noncommercial-sharealike": "cc-by-nc-sa",
    "attribution": "cc-by",
    "creative-commons-attribution": "cc-by",
    "us-government-work": "public-domain",
    "no-known-copyright-restrictions": "public-domain",
}


def redistributable(licences: Iterable[str]) -> bool:
    """Whether every one of these licences is known to let edited pictures be passed on.

    A licence that allows no derivatives (CC BY-ND) does not: every picture here went through the tool. A name that is
    not known counts as forbidden, since nobody has said yes.
    """
    found = list(licences)
    return bool(found) and all(_FREE.fullmatch(_folded(licence)) is not None for licence in found)


def _folded(licence: str) -> str:
    """One spelling for "CC BY-SA 4.0", "cc-by-sa-4.0" and the address of its deed."""
    text = licence.strip().lower()
    if address := _CREATIVE_COMMONS.search(text):
        name = address.group(1)
        return _SPOKEN.get(name, f"cc-{name}")
    text = re.sub(r"[^a-z0-9]+", "-", text).strip("-")
    return _SPOKEN.get(text, text)
