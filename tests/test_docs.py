"""What README.md, docs/ and the docstrings say is run.

A ``python`` block with ``>>>`` goes through doctest; another one is run as it stands, and a ``text`` block straight
after it is what it prints ("..." stands for anything). The blocks of a page share one namespace.
"""

import contextlib
import doctest
import importlib
import io
import os
import pathlib
import pkgutil
import re
import runpy
import subprocess
import sys
from typing import NamedTuple

import pytest

import numbagrad

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


class Block(NamedTuple):
    """A fenced block and the number of its first line."""

    language: str
    text: str
    line: int
    after: str
    """What stands between the block before and this one."""


def blocks_of(text):
    """The fenced blocks of a page, in order."""
    found, end = [], 0
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start(2)) + 1
        found.append(Block(match[1], match[2], line, text[end : match.start()]))
        end = match.end()
    return found


def run_doctest(text, namespace, name, line):
    """Run a block with ``>>>`` in `namespace`; fails with doctest's own report."""
    examples = doctest.DocTestParser().get_doctest(text, namespace, name, name, line - 1)
    examples.globs = namespace  # not a copy: later blocks go on from here
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    failed, _ = runner.run(examples, out=report.write, clear_globs=False)
    assert not failed, report.getvalue()


def run_script(block, expected, namespace, name):
    """Run a block as it stands; what it prints must be `expected`, where that is given."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        # Line numbers are those of the page.
        exec(compile("\n" * (block.line - 1) + block.text, name, "exec"), namespace)
    if expected is not None:
        got = printed.getvalue()
        checker = doctest.OutputChecker()
        assert checker.check_output(expected, got, FLAGS), f"{name}:{block.line}: expected\n{expected}\ngot\n{got}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page, monkeypatch, tmp_path):
    name = str(page.relative_to(ROOT))
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    namespace = {"__name__": "__main__"}
    monkeypatch.chdir(tmp_path)
    for i, block in enumerate(blocks):
        if block.language != "python":
            continue
        if ">>> " in block.text:
            run_doctest(block.text, namespace, name, block.line)
            continue
        following = blocks[i + 1] if i + 1 < len(blocks) else None
        shown = following is not None and following.language == "text" and not following.after.strip()
        run_script(block, following.text if shown else None, namespace, name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    targets = [target for target, _ in LINK.findall(page.read_text(encoding="utf-8"))]
    local = [target for target in targets if not target.startswith(("http:", "https:"))]
    missing = [target for target in local if not (page.parent / target).exists()]
    assert not missing


def test_a_wrong_page_fails():
    blocks = blocks_of("text\n\n```python\nprint(1)\n```\n\n```text\n2\n```\n")
    assert [(block.language, block.line) for block in blocks] == [("python", 4), ("text", 8)]
    with pytest.raises(AssertionError, match="expected"):
        run_script(blocks[0], blocks[1].text, {}, "page")
    with pytest.raises(AssertionError, match="Failed example"):
        run_doctest(">>> 1 + 1\n3\n", {}, "page", 1)


def modules_with_examples():
    """The modules whose text has a ``>>>``; importing all the others would take longer than running these."""
    found = []
    for module in pkgutil.walk_packages(numbagrad.__path__, "numbagrad."):
        if module.name.startswith("numbagrad._generated") or module.name.endswith("__main__"):
            continue
        spec = module.module_finder.find_spec(module.name, None)
        if ">>> " in pathlib.Path(spec.origin).read_text(encoding="utf-8"):
            found.append(module.name)
    return found


@pytest.mark.parametrize("name", modules_with_examples())
def test_docstrings(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for examples in doctest.DocTestFinder().find(module, name):
        runner.run(examples, out=report.write)
    assert runner.tries
    assert not runner.failures, report.getvalue()


def test_the_two_commands():
    """One line each, with extras and commands that exist; the second is what CI runs."""
    text = PAGES[0].read_text(encoding="utf-8")
    shell = [block.text.strip() for block in blocks_of(text) if block.language == "sh"]
    first, second = shell[:2]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert first == 'python -m pip install ".[examples]" && python -m numbagrad demo'
    assert second == 'python -m pip install -e ".[test]" && python -m pytest -n 2'
    for extra in ("examples", "test"):
        assert f"\n{extra} = [" in project
    assert "-m pytest -n 2" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_count_of_ops_is_current():
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "tests.count"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    page = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    assert done.stdout.strip() in page.splitlines(), "run python -m tests.count --write"


def test_picture_of_pause(tmp_path):
    """The script of the picture: the two curves are one."""
    pytest.importorskip("matplotlib").use("Agg")
    drawing = runpy.run_path(str(ROOT / "docs" / "pictures" / "pause.py"))
    plain, paused, slow = drawing["draw"](tmp_path / "pause.png")
    assert plain == paused
    assert len(plain) > 50
    assert slow[-1] > 1.1 * plain[-1]
    assert (tmp_path / "pause.png").stat().st_size > 10_000
