"""One style sheet for all pages: of what the theme and its extensions bring, what can match.

They bring nearly 500 kB, for tabs, cards and carousels too. A rule stays if every name that its
selector asks for occurs in the markup of a page, or in a script, which may give it later; a state
or a medium asks for no name. A variable, an animation or a font stays while something reads it.

Below, a style sheet is a list of pairs: a selector and the list of what it holds, the name of a
property and its value, or a statement and None.
"""

import re
from hashlib import sha256

import tinycss2

from book._ext.theme.lighten import with_icons

SHEET = "_static/site.css"
LINK = r'\s*<link(?=[^>]*\brel="stylesheet")[^>]*\bhref="([^"]*?)(_static/[^"?]*)[^"]*"[^>]*>'
JOINED = '\n    <link rel="stylesheet" href="{root}{sheet}?v={digest}" />'
INLINE_SCRIPT = r"<script\b[^>]*>(.*?)</script>"
TAG = r"<([a-zA-Z][\w-]*)([^<>]*)"
ATTRIBUTE = r'([\w:-]+)(="([^"]*)")?'
MARKS = {"class": ".", "id": "#"}
WORD = r"[\w-]+"
# The beginning of a name that a script ends, as in "book-part-" + number.
BEGINNING = r"[\w-]{2,}-(?=[\"'`]|\$\{)"
VARIABLE = r"--[\w-]+"
ALTERNATIVES = {"is", "where", "has", "-webkit-any", "-moz-any"}
HOLDS_RULES = {"media", "supports", "layer", "container"}


def join_styles(site, pages):
    """Write what can match into one sheet, link it, and remove the sheets that it is made of."""
    sheets = dict.fromkeys(sheet for p in pages.values() for _, sheet in re.findall(LINK, p))
    scripts = [path.read_text(encoding="utf-8") for path in sorted(site.glob("_static/**/*.js"))]
    names = Names(pages.values(), scripts)
    rules = [pair for sheet in sheets for pair in possible(read(site / sheet), names)]
    css = written(without_unread(rules, "".join([*scripts, *pages.values()])))
    css = with_icons(site, css)
    for path in site.glob("_static/**/*.css"):
        path.unlink()
    (site / SHEET).write_text(css + "\n", encoding="utf-8")
    digest = sha256(css.encode()).hexdigest()[:8]
    for path, page in pages.items():
        if link := re.search(LINK, page):
            joined = iter([JOINED.format(root=link[1], sheet=SHEET, digest=digest)])
            pages[path] = re.sub(LINK, lambda _, joined=joined: next(joined, ""), page)


def read(path) -> list:
    """Return the rules of a style sheet as parsed, those that it imports in their place."""
    css = path.read_text(encoding="utf-8")
    rules = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
    for place, rule in reversed([*enumerate(rules)]):
        if rule.type == "at-rule" and rule.lower_at_keyword == "import":
            [imported] = [token.value for token in rule.prelude if token.type in ("string", "url")]
            rules[place : place + 1] = read(path.parent / imported)
    return rules


class Names:
    """The names that a selector may ask for: what pages have, and the words of scripts."""

    def __init__(self, pages, scripts):
        markup = "".join(pages)
        tags = {(tag.lower(), rest) for tag, rest in re.findall(TAG, markup)}
        self.marks = {tag for tag, _ in tags}
        for name, _, value in re.findall(ATTRIBUTE, " ".join(rest for _, rest in tags)):
            self.marks.add(f"[{name}")
            if name in MARKS:
                self.marks |= {MARKS[name] + word for word in value.split()}
        script = "\n".join([*scripts, *re.findall(INLINE_SCRIPT, markup, re.S)])
        self.words = set(re.findall(WORD, script))
        self.properties = {word.replace("-", "").lower() for word in self.words}
        self.beginnings = tuple(set(re.findall(BEGINNING, script)))

    def has(self, kind, name) -> bool:
        """Whether there is a class (kind "."), id ("#"), attribute ("[") or element ("")."""
        # A script gives aria-label as ariaLabel, data-mode as dataset.mode.
        known = name.removeprefix("data-").replace("-", "") in self.properties
        known = known if kind == "[" else name in self.words or name.startswith(self.beginnings)
        return known or kind + name in self.marks

    def allow(self, selector) -> bool:
        """Whether something may have all that a selector, without a comma, asks for."""
        before = ""
        for token in selector:
            wanted = True
            if token.type == "function" and token.lower_name in ALTERNATIVES:
                wanted = any(map(self.allow, parts(token.arguments)))
            elif token.type == "[] block":
                wanted = self.has("[", next(t for t in token.content if t.type == "ident").value)
            elif token.type == "hash":
                wanted = self.has("#", token.value)
            elif token.type == "ident" and before != ":":
                wanted = (
                    self.has(".", token.value) if before == "." else self.has("", token.lower_value)
                )
            if not wanted:
                return False
            before = token.value if token.type == "literal" else ""
        return True


def parts(tokens) -> list:
    """Return what stands between the commas."""
    found = [[]]
    for token in tokens:
        if token == ",":
            found.append([])
        elif token.type != "comment":
            found[-1].append(token)
    return found


def possible(rules, names) -> list:
    """Return the pairs of a style sheet, without the selectors that nothing can match."""
    pairs = []
    for rule in rules:
        if rule.type == "declaration":
            value = text(rule.value) + ("!important" if rule.important else "")
            pairs.append((rule.name, value))
        elif rule.type == "qualified-rule":
            kept = [text(part) for part in parts(rule.prelude) if names.allow(part)]
            pairs += [(",".join(kept), inside(rule, names))] if kept else []
        elif rule.type == "at-rule" and rule.content is None:
            if rule.lower_at_keyword != "charset":
                pairs.append((f"@{rule.at_keyword} {text(rule.prelude)}".strip(), None))
        elif rule.type == "at-rule":
            body = inside(rule, names)
            pairs += [(f"@{rule.at_keyword} {text(rule.prelude)}".strip(), body)] if body else []
        elif rule.type == "error":
            raise ValueError(f"line {rule.source_line}: {rule.message}")
    return pairs


def inside(rule, names) -> list:
    """Return the pairs of what a rule holds; the steps of an animation are no selectors."""
    if rule.type == "at-rule" and rule.lower_at_keyword.endswith("keyframes"):
        steps = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
        return [(text(step.prelude), inside(step, names)) for step in steps]
    holds_rules = rule.type == "at-rule" and rule.lower_at_keyword in HOLDS_RULES
    parse = tinycss2.parse_rule_list if holds_rules else tinycss2.parse_blocks_contents
    return possible(parse(rule.content, skip_comments=True, skip_whitespace=True), names)


def text(tokens) -> str:
    """Return tokens as they are written, on one line."""
    return re.sub(r"\s*\n\s*", " ", tinycss2.serialize(tokens)).strip()


def without_unread(pairs, texts) -> list:
    """Return a style sheet without the variables and animations that nothing reads.

    Parameters
    ----------
    pairs : the style sheet
    texts : what reads variables besides it
    """
    declared = [*declarations(pairs)]
    values = " ".join(value for name, value in declared if not name.startswith("--"))
    read = set(re.findall(VARIABLE, texts + values))
    more = read
    while more:
        found = {v for name, value in declared if name in more for v in re.findall(VARIABLE, value)}
        more = found - read
        read |= more
    words = set(re.findall(WORD, " ".join(value for _, value in declared)))

    def kept(head, body):
        if head.startswith("--"):
            return head in read
        animation = re.match(r"@[\w-]*keyframes (.*)", head)
        return body != [] and (not animation or animation[1] in words)

    def prune(pairs):
        pairs = [(head, prune(body) if isinstance(body, list) else body) for head, body in pairs]
        return [pair for pair in pairs if kept(*pair)]

    return prune(pairs)


def declarations(pairs):
    """Yield the properties and values of a style sheet, however deep they stand."""
    for head, body in pairs:
        if isinstance(body, list):
            yield from declarations(body)
        elif body is not None:
            yield head, body


def written(pairs) -> str:
    """Return a style sheet as text."""
    return "".join(
        f"{head}{{{written(body)}}}"
        if isinstance(body, list)
        else f"{head};"
        if body is None
        else f"{head}:{body};"
        for head, body in pairs
    )
