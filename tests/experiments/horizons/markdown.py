"""Tables in Markdown, read again."""


def cells_of(table: str) -> tuple[list[str], list[list[str]]]:
    """The header of a table, and its rows."""
    header, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    assert all(len(row) == len(header) for row in rows)
    return header, rows
