"""Random mutations of C and C++ sources: the text goes in, a small change that a compiler may well accept comes out."""

import dataclasses
import re

# What may stand for what. Each entry: an operator as it is found, surrounded by blanks, and those that may replace it.
COMPARISONS = {"==": ["!="], "!=": ["=="], "<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="]}
OPERATORS = {"+": ["-"], "-": ["+"], "*": ["+"], "/": ["*"], "%": ["*"], "&&": ["||"], "||": ["&&"], "&": ["|"], "|": ["&"],
             "<<": [">>"], "+=": ["-="], "-=": ["+="], "|=": ["&="], "&=": ["|="]}
NOT_CALLED = {"if", "while", "for", "switch", "return", "sizeof", "defined", "catch", "alignof", "decltype", "assert"}

BLANKED = re.compile(r"""
    //[^\n]* | /\*.*?\*/                          # comments
  | ^[ \t]*\#(?:[^\n\\]|\\.)*$                    # directives, with their continuation lines
  | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*'     # literals: blanked between their quotes
""", re.VERBOSE | re.DOTALL | re.MULTILINE)
INITIALISER = re.compile(r"=\s*\{")


@dataclasses.dataclass(frozen=True)
class Mutation:
    """Replaces `text[start:end]` of a file."""
    kind: str
    start: int
    end: int
    new: str

    def apply(self, text):
        return text[:self.start] + self.new + text[self.end:]

    def line(self, text):
        return text.count("\n", 0, self.start) + 1


def candidates(text, random):
    """All mutations of a source, by kind; where there is a choice of replacements, `random` makes it."""
    code, literals = blank(text)
    data = initialisers(code)
    found = {
        "comparison": exchanged("comparison", code, COMPARISONS, random),
        "operator": exchanged("operator", code, OPERATORS, random),
        "constant": [m for m in constants(code, random) if not inside(m, data)],
        "condition": conditions(code),
        "statement": statements(code),
        "callee": callees(code, random),
        "text": [m for m in texts(literals, random) if not inside(m, data)],
        "data": [dataclasses.replace(m, kind="data") for m in constants(code, random) + texts(literals, random)
                 if inside(m, data)],
    }
    return {kind: mutations for kind, mutations in found.items() if mutations}


def blank(text):
    """The text with comments, directives and the insides of literals as blanks, and the places of its strings."""
    literals = []

    def blanks(match):
        found = match.group()
        if found[0] == '"' and len(found) > 2:
            literals.append((match.start() + 1, found[1:-1]))
        if found[0] in "\"'":
            return found[0] + "_" * (len(found) - 2) + found[0]
        return re.sub(r"[^\n]", " ", found)

    return BLANKED.sub(blanks, text), literals


def initialisers(code):
    """The spans of braces behind an equals sign."""
    spans = []
    for match in INITIALISER.finditer(code):
        end = closing(code, match.end() - 1, "{", "}")
        if end:
            spans.append((match.end(), end))
    return spans


def inside(mutation, spans):
    return any(start <= mutation.start < end for start, end in spans)


def closing(code, opening, left, right):
    """Where the bracket at `opening` is closed."""
    depth = 0
    for place in range(opening, len(code)):
        depth += (code[place] == left) - (code[place] == right)
        if depth == 0:
            return place
    return None


def exchanged(kind, code, table, random):
    found = []
    for match in re.finditer(r"(?<= )[-+*/%&|<>=!]{1,2}(?= )", code):
        if match.group() in table:
            found.append(Mutation(kind, match.start(), match.end(), random.choice(table[match.group()])))
    return found


def constants(code, random):
    found = []
    for match in re.finditer(r"(?<![\w.])(0[xX][0-9a-fA-F]+|\d+)(?![\w.])", code):
        new = int(match.group(), 16 if match.group()[:2] in ("0x", "0X") else 10) + random.choice([1, 1, -1, 7])
        found.append(Mutation("constant", match.start(), match.end(), str(max(new, 0))))
    found += [Mutation("constant", m.start(), m.end(), "false" if m.group() == "true" else "true")
              for m in re.finditer(r"\b(true|false)\b", code)]
    return found


def conditions(code):
    """`if (x)` becomes `if (!(x))`; loops too."""
    found = []
    for match in re.finditer(r"\b(?:if|while) ?\(", code):
        end = closing(code, match.end() - 1, "(", ")")
        if end:
            found.append(Mutation("condition", match.end(), end, f"!({code[match.end():end]})"))
    # A literal inside would have lost its text.
    return [mutation for mutation in found if not set("\"'") & set(mutation.new)]


def statements(code):
    """Calls, assignments and jumps that fill a line are left out."""
    line = r"^[ \t]+((?:[\w.>\[\]()*&:-]+ (?:[-+|&*]?=) |\+\+|--|return\b|break\b|continue\b|goto\b|[\w:.>-]+ ?\()[^;{}\n]*;)[ \t]*$"
    return [Mutation("statement", match.start(1), match.end(1), ";") for match in re.finditer(line, code, re.MULTILINE)]


def callees(code, random):
    """Another function that the same file calls is called."""
    # What starts at the margin defines a function.
    found = re.finditer(r"^[ \t].*?$", code, re.MULTILINE)
    lines = [(line.start(), line.group()) for line in found]
    calls = [(start + call.start(), call.group()) for start, line in lines for call in re.finditer(r"(?<![\w.>:])[a-zA-Z_]\w+(?=\()", line)
             if call.group() not in NOT_CALLED]
    names = sorted({name for _, name in calls})
    if len(names) < 2:
        return []
    return [Mutation("callee", start, start + len(name), random.choice([other for other in names if other != name])) for start, name in calls]


def texts(literals, random):
    """One letter or digit of a string becomes another one."""
    found = []
    for start, content in literals:
        places = [match.start() for match in re.finditer(r"(?<![\\%\w])\w|(?<=[a-z])[a-z]", content)]
        if places:
            place = random.choice(places)
            found.append(Mutation("text", start + place, start + place + 1, "q" if content[place] != "q" else "z"))
    return found
