"""The Content-Security-Policy of every page: it is stated, it refuses, and nothing needs more."""

import re
from base64 import b64encode
from hashlib import sha256

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
POLICY = r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"'
SCRIPT = r"(?s)<script\b([^>]*)>(.*?)</script>"
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


def hash_of(script: str) -> str:
    """The source expression for one inline script."""
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


@pytest.fixture(scope="module")
def text(site_dir, page_name):
    """A page as it is built."""
    return (site_dir / page_name).read_text(encoding="utf-8")


def test_policy_lets_in_the_site_and_the_pages_own_scripts_alone(text):
    before, policy, _ = re.split(POLICY, text)
    assert re.findall(r"<(\w+)", before) == ["html", "head", "meta"], "a charset, then the policy"
    policy = dict(directive.strip().split(" ", 1) for directive in policy.split(";"))
    runs_python = 'class="tl-run"' in text
    scripts = set(policy.pop("script-src").split())
    named = {"'self'", "'wasm-unsafe-eval'"} if runs_python else {"'self'"}
    inline = [script for attributes, script in re.findall(SCRIPT, text) if "src" not in attributes]
    assert scripts == named | {hash_of(script) for script in inline}
    assert policy == (FIXED | PYTHON if runs_python else FIXED)


def test_no_attribute_holds_code(text):
    tags = re.findall(r"<[a-z][^<>]*>", re.sub(SCRIPT, "", text))
    assert [tag for tag in tags if re.search(r"""(?i)\son\w+\s*=|=["'\s]*javascript:""", tag)] == []


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
    page.problems.clear()


def test_questions_take_style_and_script_from_files_that_the_page_links(site_dir, notebook):
    page = (site_dir / "notebooks" / f"{notebook}.html").read_text(encoding="utf-8")
    article = re.search(r"<article.*</article>", page, re.S)[0]
    assert "<tl-" in article
    assert "<script" not in article
    assert "<style" not in article
    linked = re.findall(r'<script defer src="\.\./_static/tl-([\w-]+)\.js\?v=\w{8}">', page)
    questions = {kind for kind in re.findall(r"<tl-([\w-]+) ", article) if not is_exhibit(kind)}
    assert sorted(linked) == sorted(questions)
