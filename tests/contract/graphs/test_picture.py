"""What notebooks show: graphs, streams and traces."""

import xml.etree.ElementTree as ElementTree

import pytest

import anabranch as ab

from ..arrays import zeros


def svg_of(graph):
    html = graph._repr_html_()
    return ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + len("</svg>")])


def test_a_graph_is_drawn_with_its_operations_and_their_order(device, a, b):
    x, y, z = (zeros(4, device=device) for _ in range(3))
    with ab.capture(a) as graph:
        ab.fill(x, 1)
        b.wait_stream(a)
        ab.copy(y, x, stream=b)
        ab.copy(z, x)
        a.wait_stream(b)
        ab.copy(z, y)
    svg = svg_of(graph)
    space = "{http://www.w3.org/2000/svg}"
    assert len(svg.findall(f"{space}g")) == len(graph.nodes) == 4
    lines = svg.findall(f"{space}line")
    assert len(lines) == len(graph.edges)
    assert all(int(line.get("y1")) < int(line.get("y2")) for line in lines)


def test_names_are_escaped_in_the_picture(device, stream):
    def f():
        pass

    f.__qualname__ = f.__name__ = "<b>&</b>"
    with ab.capture(stream) as graph:
        stream.submit(f)
    assert "<b>" not in graph._repr_html_()
    svg_of(graph)


def test_a_closed_graph_has_no_picture(device, stream):
    with ab.capture(stream) as graph:
        ab.fill(ab.zeros(4), 1)
    graph.close()
    assert "closed" in graph._repr_html_()
    assert "<svg" not in graph._repr_html_()


def test_a_stream_says_how_much_work_is_queued(device):
    stream = ab.Stream(device, name="<up & down>")
    assert "&lt;up &amp; down&gt;" in stream._repr_html_()
    assert "nothing is queued" in stream._repr_html_()
    most = "" if device.kind == "cpu" else "at most "
    first = ab.testing.Gate(stream)
    assert f": {most}1 operation is queued" in stream._repr_html_()
    second, array = ab.testing.Gate(stream), ab.zeros(4, device=device)
    ab.fill(array[:2], 1, stream=stream)
    first.open()
    assert "queued" in stream._repr_html_()
    second.open()
    stream.synchronize()
    assert "nothing is queued" in stream._repr_html_()
    with ab.capture(stream):
        assert "records for a graph" in stream._repr_html_()
    ab.testing.fail(stream, "<it>")
    with pytest.raises(ab.KernelError):
        stream.synchronize()
    assert "failed: " in stream._repr_html_()
    assert "<it>" not in stream._repr_html_()
    stream.close()
    assert "closed" in stream._repr_html_()


@pytest.mark.thread_unsafe(reason="a trace records what other threads enqueue, too")
def test_a_trace_tells_a_stream_the_names_of_what_is_queued(device, stream):
    first, second = zeros(4, device=device), zeros(4, device=device)
    other = ab.Stream(device)
    stream.synchronize()
    with ab.trace(), ab.testing.Gate(stream):
        ab.fill(first, 1, stream=stream)
        ab.copy(second, first, stream=stream)
        ab.fill(second, 1, stream=other)
        stream.submit(sum, [1])
        assert "queued: fill, copy, sum</div>" in stream._repr_html_()
        assert "queued: added wait, fill</div>" in other._repr_html_()
        for _ in range(10):
            ab.fill(first, 1, stream=stream)
        assert "fill, fill and 5 more</div>" in stream._repr_html_()
    other.synchronize()
    assert "nothing is queued" in other._repr_html_()


def test_a_trace_shows_its_page(device, stream):
    with ab.trace() as trace:
        ab.fill(zeros(4, device=device), 1, stream=stream)
    html = trace._repr_html_()
    assert html.startswith("<iframe srcdoc=")
    assert html.count('"') == 10  # nothing of the page ends the attribute
    assert "&lt;script" in html
