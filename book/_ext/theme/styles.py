"""One style sheet for all pages: of what the theme and its extensions bring, what can match.

They bring nearly 500 kB, for tabs, cards and carousels too. A selector stays if every class that it
asks for is in the markup of a page or is a word of a script, which may give it later.
"""

import re
from hashlib import sha256
from itertools import pairwise

import tinycss2

from book._ext.theme.lighten import inline_icon_fonts

SHEET = "_static/site.css"
LINK = r'\s*<link(?=[^>]*\brel="stylesheet")[^>]*\bhref="([^"]*?)(_static/[^"?]*)[^"]*"[^>]*>'
JOINED = '\n    <link rel="stylesheet" href="{root}{sheet}?v={digest}" />'
INLINE_SCRIPT = r"<script\b[^>]*>(.*?)</script>"
CLASSES = r'\bclass="([^"]*)"'
HOLDS_RULES = {"media", "supports"}


def join_styles(site, pages):
    """Write what can match into one sheet, link it, and remove the sheets that it is made of."""
    sheets = dict.fromkeys(sheet for p in pages.values() for _, sheet in re.findall(LINK, p))
    scripts = [path.read_text(encoding="utf-8") for path in site.glob("_static/**/*.js")]
    classes = known_classes("".join(pages.values()), scripts)
    css = "".join(rules_that_match(parse_stylesheet(site / sheet), classes) for sheet in sheets)
    css = inline_icon_fonts(site, css)
    for path in site.glob("_static/**/*.css"):
        path.unlink()
    (site / SHEET).write_text(css + "\n", encoding="utf-8")
    digest = sha256(css.encode()).hexdigest()[:8]
    for path, page in pages.items():
        if link := re.search(LINK, page):
            joined = iter([JOINED.format(root=link[1], sheet=SHEET, digest=digest)])
            pages[path] = re.sub(LINK, lambda _, joined=joined: next(joined, ""), page)


def parse_stylesheet(path) -> list:
    """Return the rules of a style sheet as parsed, those that it imports in their place."""
    css = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
    rules = tinycss2.parse_stylesheet(css, skip_whitespace=True)
    for place, rule in reversed([*enumerate(rules)]):
        if rule.type == "at-rule" and rule.lower_at_keyword == "import":
            [imported] = [token.value for token in rule.prelude if token.type in ("string", "url")]
            rules[place : place + 1] = parse_stylesheet(path.parent / imported)
    return rules


def known_classes(markup, scripts) -> set[str]:
    """Return the classes that something has, and the words of scripts, which may give more."""
    source = "\n".join([*scripts, *re.findall(INLINE_SCRIPT, markup, re.S)])
    return {*" ".join(re.findall(CLASSES, markup)).split(), *re.findall(r"[\w-]+", source)}


def rules_that_match(rules, classes) -> str:
    """Return a style sheet without the selectors that nothing can match."""
    css = []
    for rule in rules:
        if rule.type == "error":
            raise ValueError(f"line {rule.source_line}: {rule.message}")
        if rule.type == "qualified-rule":
            wanted = [text(part) for part in split(rule.prelude) if classes_of(part) <= classes]
            css += [f"{','.join(wanted)}{{{text(rule.content)}}}"] if wanted else []
        elif rule.lower_at_keyword in HOLDS_RULES:
            inside = tinycss2.parse_rule_list(rule.content, skip_whitespace=True)
            inside = rules_that_match(inside, classes)
            css += [f"@{rule.at_keyword} {text(rule.prelude)}{{{inside}}}"] if inside else []
        elif rule.lower_at_keyword != "charset":
            css.append(text([rule]))
    return "".join(css)


def split(tokens) -> list:
    """Return what stands between the commas."""
    found = [[]]
    for token in tokens:
        if token == ",":
            found.append([])
        else:
            found[-1].append(token)
    return found


def classes_of(selector) -> set[str]:
    """Return the classes that a selector, without a comma, asks for outside of brackets."""
    pairs = pairwise(selector)
    return {name.value for dot, name in pairs if dot == "." and name.type == "ident"}


def text(tokens) -> str:
    """Return tokens as they are written, on one line."""
    return re.sub(r"\s+", " ", tinycss2.serialize(tokens)).strip()
