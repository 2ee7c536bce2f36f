"""parse_metrics.py OPENMETRICS TEXT: reads both with the reference parsers and compares what they contain."""
import sys

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client import parser as text


def families(parser, path):
    return {f.name: f for f in parser.text_string_to_metric_families(open(path).read())}


open_metrics, plain = families(openmetrics, sys.argv[1]), families(text, sys.argv[2])
# The parser of the text format also takes the suffix of counters off.
assert open_metrics.keys() == plain.keys(), open_metrics.keys() ^ plain.keys()


def lines(family):
    """Names and labels, without the values, which change, and with bounds as numbers."""
    numbers = ("le", "quantile")
    return {(s.name, tuple(sorted((k, float(v) if k in numbers else v) for k, v in s.labels.items())))
            for s in family.samples}


samples = 0
for name, family in open_metrics.items():
    other = plain[name]
    assert (family.type, family.documentation) == (other.type, other.documentation), (name, family, other)
    assert lines(family) == lines(other), (name, lines(family) ^ lines(other))
    assert family.unit == next((u for u in ("seconds", "bytes") if name.endswith("_" + u)), ""), (name, family.unit)
    samples += len(family.samples)
print(f"{len(open_metrics)} families, {samples} samples")
