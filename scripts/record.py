#!/usr/bin/env python3
"""Records scripts/demo.sh on a terminal, with the binaries in $BUILT, and draws what it shows: docs/pictures/demo.svg.

    BUILT=target/release scripts/record.py            # writes the picture
    BUILT=target/debug scripts/record.py --check      # fails if the demo says something else than the picture (times aside)
"""
import html
import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
PICTURE = REPOSITORY / "docs/pictures/demo.svg"
COLUMNS, WIDTH, LINE, MARGIN = 100, 8.43, 19, 18
STYLE = (
    "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#e6e6e6;white-space:pre}"
    ".bold{font-weight:bold;fill:#fff}.dim{fill:#9aa3ae}.green{fill:#7bd88f}.yellow{fill:#f2c55c}.red{fill:#ff8a80}"
)
CLASSES = {"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow"}
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")


def record():
    """What the demo writes on a terminal."""
    command = ["script", "-qefc", str(REPOSITORY / "scripts/demo.sh"), "/dev/null"]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if ran.returncode != 0:
        sys.exit(f"the demo failed:\n{ran.stdout}")
    return ran.stdout.replace("\r\n", "\n")


def spans(line):
    """The parts of a line, each with its class."""
    style, parts = "", ESCAPE.split(line)
    for number, part in enumerate(parts):
        if number % 2:
            style = CLASSES.get(part, "")
        elif part:
            yield style, part


def draw(text):
    lines = text.rstrip("\n").split("\n")
    height = LINE * len(lines) + 2 * MARGIN
    width = round(COLUMNS * WIDTH + 2 * MARGIN)
    rows = []
    for number, line in enumerate(lines):
        parts = [f'<tspan class="{style}">{html.escape(part)}</tspan>' if style else html.escape(part) for style, part in spans(line)]
        rows.append(f'<text xml:space="preserve" x="{MARGIN}" y="{MARGIN + LINE * number + 14}">{"".join(parts)}</text>')
    title = "A terminal session: which edits of a small C project make its test run, and which do not"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{title}</title>", f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#1b1f24"/>', *rows, "</svg>", ""])


def told(drawn):
    """What a picture says, but for times, sizes and hashes, which are others each time, and for what whoever starts it has set."""
    plain = html.unescape(re.sub(r"<[^>]*>", "", drawn))
    words = re.sub(r"/tmp/tmp\.\w+|on \S+ in|[0-9a-f]{12,}", "#", plain)
    words = re.sub(r"[0-9]+(\.[0-9]+)?( (ms|s|min|KiB|MiB|B|%)\b|%)?", "#", words)
    lines = [" ".join(line.split()) for line in words.split("\n")]
    return [line for line in lines if not line.startswith("assumed: ")]


def main():
    drawn = draw(record())
    if sys.argv[1:] == ["--check"]:
        there, now = told(PICTURE.read_text()), told(drawn)
        if there != now:
            differences = [f"  there: {one}\n  now:   {other}" for one, other in zip(there, now) if one != other]
            sys.exit("docs/pictures/demo.svg is of another time; scripts/record.py draws it anew\n" + "\n".join(differences))
    else:
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(drawn)
        print(PICTURE)


main()
