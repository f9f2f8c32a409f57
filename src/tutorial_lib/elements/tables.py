"""The tables of all elements."""

NO_MATH = "tex2jax_ignore mathjax_ignore"  # a token may be a dollar sign
TABLE = '<table class="tl-table"><thead><tr>{}</tr></thead>\n<tbody>{}</tbody></table>'


def headings(*names):
    """Draw the cells that name the columns of a table."""
    return "".join(f'<th scope="col">{name}</th>' for name in names)


def table(names, rows):
    """Draw a table of texts: the names of its columns, and rows that each begin with a name."""
    lines = [
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{text}</td>" for text in rest)}</tr>'
        for first, *rest in rows
    ]
    return TABLE.format(headings(*names), "\n".join(lines))


def grid(cells, rows, columns, caption, attributes):
    """Draw cells, each given as its attributes and its text, below and beside their names."""
    lines = "\n".join(
        f'<tr><th scope="row">{name}</th>'
        + "".join(f"<td{f' {given}' * bool(given)}>{text}</td>" for given, text in line)
        + "</tr>"
        for name, line in zip(rows, cells, strict=True)
    )
    head = f"<thead><tr><td></td>{headings(*columns)}</tr></thead>"
    return f"<table {attributes}><caption>{caption}</caption>{head}\n<tbody>{lines}</tbody></table>"


def numbered_names(names):
    """Return names, each that occurs twice followed by its position."""
    return [f"{name} ({i})" if names.count(name) > 1 else name for i, name in enumerate(names)]
