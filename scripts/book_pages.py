#!/usr/bin/env python3
"""What `make book` does besides mdBook: `highlighter GRAMMAR` writes the language for highlight.js, of a TextMate
grammar; `paths FOLDER` makes names of links that leave the book; `check FOLDER` looks for links in the pages that
lead nowhere."""

import html.parser
import json
import pathlib
import re
import sys
import urllib.parse

# the first part of a scope, or the first two, and the class of highlight.js
CLASSES = {
    "comment": "comment",
    "constant.language": "literal",
    "constant.numeric": "number",
    "entity.name": "title",
    "keyword": "keyword",
    "storage": "keyword",
    "string": "string",
    "support.function": "built_in",
    "support.type": "type",
}

SCRIPT = """
// Languages of the book, and blocks of them once more: they were unknown when the page was highlighted.
for (const name of ["kingpost", "schedule"]) {
  hljs.registerLanguage(name, () => ({ contains: MODES }));
}
for (const code of document.querySelectorAll("code[class*=language-kingpost], code[class*=language-schedule]")) {
  code.className = code.className.split(/[ ,]/)[0];
  code.textContent = code.textContent;
  hljs.highlightBlock(code);
}
"""


def class_of(scope):
    """The class of a scope, if it has one."""
    parts = scope.split(".")
    return CLASSES.get(".".join(parts[:2])) or CLASSES.get(parts[0])


def modes(grammar, rules):
    """What highlight.js looks for, in the order of the grammar."""
    found = []
    for rule in rules:
        if "include" in rule:
            found += modes(grammar, [grammar["repository"][rule["include"].removeprefix("#")]])
        elif "patterns" in rule and "match" not in rule and "begin" not in rule:
            found += modes(grammar, rule["patterns"])
        elif "begin" in rule and class_of(rule["name"]):
            found.append({"className": class_of(rule["name"]), "begin": rule["begin"], "end": rule["end"]})
        elif "name" in rule and class_of(rule["name"]):
            found.append({"className": class_of(rule["name"]), "begin": rule["match"]})
    return found


def highlighter(path):
    """Prints the script."""
    grammar = json.loads(pathlib.Path(path).read_text())
    print(SCRIPT.replace("MODES", json.dumps(modes(grammar, grammar["patterns"]))))


def paths(folder):
    """Links to other files of the repository become their paths, as the pages stand alone."""
    for chapter in pathlib.Path(folder).glob("*.md"):
        text = re.sub(r"\[([^]]*)\]\((?:\.\./){3}([^)#]+)(?:#[^)]*)?\)", r"\1 (`\2`)", chapter.read_text())
        chapter.write_text(text)


class Page(html.parser.HTMLParser):
    """The links of a page and the places that it has."""

    def __init__(self, text):
        super().__init__()
        self.links, self.places = [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.places.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)


def check(folder):
    """Every link of a page leads to a file, and to a place of it."""
    folder = pathlib.Path(folder)
    pages = {path.resolve(): Page(path.read_text()) for path in folder.rglob("*.html")}
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            url = urllib.parse.urlparse(link)
            if url.scheme or url.netloc or path.name == "404.html":
                continue
            target = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
            exists = target.exists()
            if not exists or (target in pages and url.fragment and url.fragment not in pages[target].places):
                wrong.append(f"{path.name}: {link}")
    if wrong or not pages:
        sys.exit("book: links lead nowhere:\n  " + "\n  ".join(wrong))
    print(f"book: {len(pages)} pages, {sum(len(page.links) for page in pages.values())} links")


if __name__ == "__main__":
    {"highlighter": highlighter, "paths": paths, "check": check}[sys.argv[1]](sys.argv[2])
