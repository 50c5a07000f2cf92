"""What `make site` adds to MkDocs (mkdocs.yml `hooks`): the menu, README and its neighbours as pages, a search offline.

The menu is docs/README.md: a section for each question, in its order. A link to a file outside docs/ becomes its path.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BESIDE = {"README.md": "start.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages of the repository's root, and their names in the site."""
WORKER = ROOT / "tests" / "site_worker.js"
_SHIM = "https://unpkg.com/iframe-worker/shim"
"""Where the theme would fetch such a worker from, when a page is read."""
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)((?:#[^)]*)?)\)")


def questions() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each question of docs/README.md, with the titles and files of its pages."""
    for part in (DOCS / "README.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        rows = re.findall(r"^\| (\[.*?\)) \|", part, re.MULTILINE)
        yield part.splitlines()[0], [link for row in rows for link in re.findall(r"\[([^\]]+)\]\(([^)#]+\.md)\)", row)]


def menu() -> list[dict[str, Any]]:
    """MkDocs' `nav`."""
    first: list[dict[str, Any]] = [{"nemesrv": "start.md"}, {"All questions": "README.md"}]
    asked = [{question: [{title: file} for title, file in pages]} for question, pages in questions()]
    return [*first, *asked, {"The project": [{"Contributing": "contributing.md"}, {"Changelog": "changelog.md"}]}]


def within(page: str, text: str) -> str:
    """The page's text, whose links lead to pages of the site; `page` is its path in docs/, or ../NAME beside it."""

    def link(found: re.Match[str]) -> str:
        shown, title, target, anchor = found.groups()
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        whole = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
        if whole in BESIDE:
            whole = f"docs/{BESIDE[whole]}"
        if whole.startswith("docs/") and (whole.removeprefix("docs/") in BESIDE.values() or (ROOT / whole).is_file()):
            here = posixpath.dirname(page) if not page.startswith("../") else ""
            return f"{shown}[{title}]({posixpath.relpath(whole.removeprefix('docs/'), here or '.')}{anchor})"
        return f"{title} (`{whole}`)" if title.strip("`") not in whole else f"`{whole}`"

    parts = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)


def on_config(config: Any) -> Any:
    config.nav = menu()
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    files.append(File.generated(config, WORKER.name, content=WORKER.read_text(encoding="utf-8")))
    for name, page in BESIDE.items():
        text = within(f"../{name}", (ROOT / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    return markdown if page.file.src_uri in BESIDE.values() else within(page.file.src_uri, markdown)


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    assert _SHIM in output, "the theme loads its worker from elsewhere now: see tests/site.py"
    return output.replace(_SHIM, posixpath.relpath(WORKER.name, posixpath.dirname(page.file.dest_uri) or "."))


def on_post_build(config: Any) -> None:
    (Path(config.site_dir) / "404.html").unlink()  # for web servers; it names absolute paths
