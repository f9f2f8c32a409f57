"""The Content-Security-Policy of every page: it is stated, it refuses, and nothing needs more."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tutorial_lib.elements.sources import is_exhibit

FIXED = {
    "default-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "font-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
PYTHON_HOST = "https://cdn.jsdelivr.net/pyodide/"
PYTHON = {"worker-src": "'self'", "connect-src": f"'self' {PYTHON_HOST}"}
OUTSIDERS = """() => {
  const script = document.createElement("script");
  script.textContent = "window.stranger = 'inline'";
  document.body.append(script);
  document.body.setAttribute("onclick", "window.stranger = 'attribute'");
  document.body.click();
  setTimeout("window.stranger = 'eval'");
  return new Promise((resolve) => setTimeout(() => resolve(window.stranger ?? "none"), 100));
}"""


class Head(HTMLParser):
    """A page's policies, what came before the first, its inline scripts, and code in attributes."""

    def __init__(self, path: Path):
        super().__init__()
        self.policies, self.before, self.scripts, self.code = [], [], [], []
        self._script, self.runs_python = None, False
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(values["content"])
        elif not self.policies:
            self.before.append(tag)
        if tag == "script" and "src" not in values:
            self._script = ""
        self.runs_python |= values.get("class") == "tl-run"
        self.code += [f"{name}={value}" for name, value in values.items() if is_code(name, value)]

    def handle_data(self, data):
        if self._script is not None:
            self._script += data

    def handle_endtag(self, tag):
        if tag == "script" and self._script is not None:
            self.scripts.append(self._script)
            self._script = None


def is_code(name: str, value: str) -> bool:
    """Whether a browser would run the value of this attribute as a script."""
    return name.startswith("on") or value.strip().lower().startswith("javascript:")


def hash_of(script: str) -> str:
    """The source expression for one inline script."""
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


@pytest.fixture(scope="module")
def head(site_dir, page_name):
    """What a page's policy speaks of."""
    return Head(site_dir / page_name)


@pytest.fixture(scope="module")
def policy(head):
    """The directives of a page's one policy."""
    assert len(head.policies) == 1
    return dict(directive.strip().split(" ", 1) for directive in head.policies[0].split(";"))


def test_policy_stands_before_everything_that_it_rules(head):
    assert head.before == ["html", "head", "meta"], "a charset, then the policy"


def test_policy_lets_in_the_site_and_the_pages_own_scripts_alone(head, policy):
    scripts = set(policy.pop("script-src").split())
    named = {"'self'", "'wasm-unsafe-eval'"} if head.runs_python else {"'self'"}
    assert scripts == named | {hash_of(script) for script in head.scripts}
    assert policy == (FIXED | PYTHON if head.runs_python else FIXED)


def test_no_attribute_holds_code(head):
    assert head.code == []


@pytest.mark.parametrize("from_disk", [False, True], ids=["served", "from disk"])
def test_what_a_stranger_writes_into_a_page_does_not_run(open_fresh, from_disk):
    page = open_fresh("notebooks/03_attention_weights.html", from_disk=from_disk)
    assert page.problems == []
    assert page.evaluate(OUTSIDERS) == "none"
    told = [p.split()[2:4] for p in page.problems if p.startswith("console error: policy: ")]
    assert sorted(told) == [
        ["policy:", "script-src"],
        ["policy:", "script-src-attr"],
        ["policy:", "script-src-elem"],
    ]


def test_questions_take_style_and_script_from_files_that_the_page_links(site_dir, notebook):
    page = (site_dir / "notebooks" / f"{notebook}.html").read_text(encoding="utf-8")
    article = re.search(r"<article.*</article>", page, re.S)[0]
    assert "<tl-" in article
    assert "<script" not in article
    assert "<style" not in article
    linked = re.findall(r'<script defer src="\.\./_static/tl-([\w-]+)\.js\?v=\w{8}">', page)
    questions = {kind for kind in re.findall(r"<tl-([\w-]+) ", article) if not is_exhibit(kind)}
    assert sorted(linked) == sorted(questions)
