"""A grid of pairs, query down and key across, as it stands before its script takes it over."""


def pair_grid(cells):
    """Draw a row for each query, a cell for each key.

    Parameters
    ----------
    cells : for each query, of each key the attributes of its cell and the text in it
    """
    keys = range(len(cells[0]))
    names = "".join(f'<th scope="col">{s}</th>' for s in keys)
    rows = "\n".join(
        f'<tr><th scope="row">{t}</th>'
        + "".join(f"<td{f' {given}' * bool(given)}>{text}</td>" for given, text in row)
        + "</tr>"
        for t, row in enumerate(cells)
    )
    return (
        f'<div class="tl-drawn"><table class="tl-mask" style="--keys:{len(keys)}">'
        f"<caption>query ↓ &nbsp; key →</caption><thead><tr><td></td>{names}</tr></thead>\n"
        f"<tbody>{rows}</tbody></table></div>"
    )


def packed(mask):
    """Write a mask as a link does: each row as digits of base 16, the first key foremost."""
    digits = -(-mask.shape[1] // 4)
    return "".join(f"{int(''.join(map(str, row)), 2):0{digits}x}" for row in mask.astype(int))
