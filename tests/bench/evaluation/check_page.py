#!/usr/bin/env python3
"""check_page.py DIRECTORY SECTION...: is what bench_paper wrote whole and well-formed?

index.html: every tag closed, the sections in this order, each with a table, a picture or at least a sentence; SVG that is XML;
nothing from elsewhere; no "nan" or "inf". Every .svg is XML, every row of a .csv has a cell per column, and what paper.md
shows is there.
"""
import csv
import html.parser
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

VOID = {"meta", "br", "hr", "img", "link"}
problems = []


class Page(html.parser.HTMLParser):
    """Tags that are open, ids of headings, and addresses that the page would load."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.sections, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "h2":
            self.sections.append(attributes.get("id"))
        for name in ("src", "href", "data", "action"):
            if name in attributes and not attributes[name].startswith(("#", "data:")):
                problems.append(f"<{tag} {name}={attributes[name]}> leads elsewhere")
        if tag in ("script", "iframe", "object"):
            problems.append(f"<{tag}> in a self-contained page")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            problems.append(f"</{tag}> closes nothing at line {self.getpos()[0]}")

    def handle_data(self, data):
        self.text.append(data)


def check_svg(text, where):
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        problems.append(f"{where}: {error}")
        return
    for element in root.iter():
        for name, value in element.attrib.items():
            if re.search(r"\b(nan|inf)\b", value, re.IGNORECASE):
                problems.append(f"{where}: {element.tag} {name}={value}")


def main():
    directory, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:]
    source = (directory / "index.html").read_text()
    page = Page()
    page.feed(source)
    if page.open:
        problems.append(f"not closed: {page.open}")
    if page.sections != wanted:
        problems.append(f"sections {page.sections}, not {wanted}")
    for section in re.findall(r"<section>.*?</section>", source, re.DOTALL):
        if not re.search(r"<(p|table|svg)\b", section):
            problems.append("an empty section: " + section[:80])
    if "@import" in source or re.search(r"url\((?!#)", source):
        problems.append("the style loads something")
    for word in re.findall(r"\b(?:nan|inf)\b", " ".join(page.text), re.IGNORECASE):
        problems.append(f"the page says {word}")
    pictures = re.findall(r"<svg.*?</svg>", source, re.DOTALL)
    if len(pictures) < 5 or source.count("<table") < 10:
        problems.append(f"only {len(pictures)} pictures and {source.count('<table')} tables")
    for i, svg in enumerate(pictures):
        check_svg(svg, f"picture {i}")
    for path in directory.glob("*.svg"):
        check_svg(path.read_text(), path.name)
    for path in directory.glob("*.csv"):
        rows = list(csv.reader(path.open()))
        if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
            problems.append(f"{path.name}: rows unlike its header")
    for name in re.findall(r"!\[[^]]*\]\(([^)]*)\)", (directory / "paper.md").read_text()):
        if not (directory / name).exists():
            problems.append(f"paper.md shows {name}, which is not there")
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


main()
