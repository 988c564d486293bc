"""lxml: parse and search."""

from lxml import etree


def work():
    root = etree.fromstring("<list>" + "<item n='1'/>" * 100 + "</list>")
    return [len(root.xpath("//item[@n='1']")), len(etree.tostring(root))]
