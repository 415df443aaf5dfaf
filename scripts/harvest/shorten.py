"""Makes a source shorter where no reducer is installed: lines, blocks, calls and operands."""
import re
import time

CALL = re.compile(r"\b[A-Za-z_]\w*\(|\((?:\w+ ?\**)\)|\(")
OPERAND = re.compile(r" (?:\+|-|\*|/|%|<|<=|==|!=|\^|&|&&|\|\||\?|:|>|>=|<<|>>) ")


def closing(text, start):
    """The place after the parenthesis that closes the one before `start`; none if nothing does."""
    depth = 1
    for k in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[k], 0)
        if not depth:
            return k + 1
    return None


def parts(text):
    """The parts of a list of arguments."""
    depth, part, found = 0, "", []
    for letter in text:
        depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(letter, 0)
        if letter == "," and not depth:
            found.append(part.strip())
            part = ""
        else:
            part += letter
    return [*found, part.strip()]


def smaller_lines(text):
    """The text with a statement in which a call is one of its arguments, or a side of an operator is gone."""
    lines = text.split("\n")
    for n in range(len(lines) - 1, -1, -1):
        line = lines[n]
        for found in CALL.finditer(line):
            end = closing(line, found.end())
            if end is None or found[0].startswith(("for(", "if(")):
                continue
            for part in parts(line[found.end() : end - 1]):
                if part and ";" not in part:
                    yield "\n".join([*lines[:n], line[: found.start()] + part + line[end:], *lines[n + 1 :]])
        for found in OPERAND.finditer(line):
            for side in (line[: found.start()] + ending(line, found.end()), beginning(line, found)):
                yield "\n".join([*lines[:n], side, *lines[n + 1 :]])


def ending(line, start):
    """What follows the operand that begins at a place."""
    depth = 0
    for k in range(start, len(line)):
        if not depth and line[k] in ");,]:?":
            return line[k:]
        depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(line[k], 0)
    return ""


def beginning(line, found):
    """A line without the operand before an operator."""
    depth, k = 0, found.start()
    while k > 0:
        letter = line[k - 1]
        depth += {")": 1, "]": 1, "(": -1, "[": -1}.get(letter, 0)
        if depth < 0 or not depth and (letter in ";,?:{" or line[k - 2 : k] in ("= ", "n ")):
            break
        k -= 1
    return line[:k] + line[found.end() :]


def without_lines(text):
    """The text without some lines, many first, or without the two lines of a block."""
    lines = text.split("\n")
    size = max(len(lines) // 2, 1)
    while size:
        for first in range(0, len(lines), size):
            gone = lines[first : first + size]
            if sum(line.count("{") - line.count("}") for line in gone) == 0:
                yield "\n".join(lines[:first] + lines[first + size :])
        size //= 2
    for first, line in enumerate(lines):
        if line.rstrip().endswith("{"):
            depth, last = 1, first + 1
            while depth and last < len(lines):
                depth += lines[last].count("{") - lines[last].count("}")
                last += 1
            yield "\n".join(lines[:first] + lines[last:])
            yield "\n".join(lines[:first] + lines[first + 1 : last - 1] + lines[last:])


def shorten(text, is_wrong, seconds):
    """The shortest text found in some seconds that still is wrong."""
    end, changed = time.time() + seconds, True
    while changed and time.time() < end:
        changed = False
        for smaller in (without_lines, smaller_lines):
            tried = set()
            again = True
            while again and time.time() < end:
                again = False
                for candidate in smaller(text):
                    if time.time() > end:
                        break
                    if candidate not in tried and len(candidate) < len(text):
                        tried.add(candidate)
                        if is_wrong(candidate):
                            text, again, changed = candidate, True, True
                            break
    return text
