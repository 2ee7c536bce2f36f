#!/usr/bin/env python3
"""digits.py URL FOLDER: draws digits on the page of example/digits in a browser, with the mouse, and checks the answers of
the server. URL is the address of the page. Screenshots go to FOLDER."""
import base64
import math
import pathlib
import sys

from browser import browser


def arc(x, y, across, down, begin, end):
    """Points on an ellipse, from one angle to another in degrees; 0 is on the right, 90 at the bottom."""
    return [(x + across * math.cos(math.radians(begin + (end - begin) * i / 24)),
             y + down * math.sin(math.radians(begin + (end - begin) * i / 24))) for i in range(25)]


# Strokes in a square of 1 by 1.
DRAWINGS = {
    0: [arc(0.5, 0.5, 0.2, 0.32, -90, 270)],
    1: [[(0.42, 0.3), (0.52, 0.16), (0.52, 0.84)]],
    2: [arc(0.5, 0.35, 0.19, 0.18, 190, 380) + [(0.32, 0.82), (0.72, 0.82)]],
    3: [arc(0.47, 0.33, 0.18, 0.16, 200, 440) + arc(0.47, 0.66, 0.2, 0.17, -80, 150)],
    4: [[(0.52, 0.15), (0.3, 0.58), (0.74, 0.58)], [(0.6, 0.36), (0.56, 0.86)]],
    5: [[(0.68, 0.17), (0.38, 0.17), (0.36, 0.47)] + arc(0.48, 0.63, 0.19, 0.19, -120, 140)],
    6: [[(0.6, 0.14), (0.42, 0.38)] + arc(0.5, 0.65, 0.18, 0.19, 200, 560)],
    7: [[(0.3, 0.18), (0.7, 0.18), (0.45, 0.84)], [(0.38, 0.52), (0.66, 0.52)]],
    8: [arc(0.5, 0.33, 0.15, 0.16, 90, -270) + arc(0.5, 0.66, 0.18, 0.17, -90, 270)],
    9: [arc(0.48, 0.35, 0.17, 0.18, 0, -360) + [(0.65, 0.4), (0.62, 0.6), (0.5, 0.84)]],
}


def mouse(b, kind, point):
    b.call("Input.dispatchMouseEvent", type=kind, x=point[0], y=point[1], button="left",
           buttons=0 if kind == "mouseReleased" else 1, clickCount=1)


def draw(b, strokes):
    box = b.value("(() => { const r = document.getElementById('drawing').getBoundingClientRect();"
                  " return [r.left, r.top, r.width, r.height]; })()")
    for stroke in strokes:
        points = [(box[0] + x * box[2], box[1] + y * box[3]) for x, y in stroke]
        mouse(b, "mousePressed", points[0])
        for point in points[1:]:
            mouse(b, "mouseMoved", point)
        mouse(b, "mouseReleased", points[-1])


def screenshot(b, scheme, file):
    b.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    file.write_bytes(base64.b64decode(b.call("Page.captureScreenshot")["data"]))


def main():
    url, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    b = browser(folder / "profile", folder / "digits.log")
    wrong = []
    try:
        b.call("Emulation.setDeviceMetricsOverride", width=900, height=620, deviceScaleFactor=1, mobile=False)
        b.go(url)
        b.wait("document.readyState === 'complete' && document.getElementById('bars')?.children.length === 10",
               "the page is loaded")
        for digit, strokes in DRAWINGS.items():
            b.value("document.getElementById('clear').click()")
            b.wait("!running && document.getElementById('answer').textContent === ''", "the drawing is cleared")
            draw(b, strokes)
            b.wait("!running && (document.getElementById('answer').textContent !== ''"
                   " || document.getElementById('error').textContent !== '')", f"an answer for {digit}")
            error = b.value("document.getElementById('error').textContent")
            if error:
                raise RuntimeError(error)
            answer = b.value("document.getElementById('answer').textContent")
            print(f"drawn {digit}, answer {answer}, {b.value('document.getElementById(`latency`).textContent')}")
            if answer != str(digit):
                wrong.append(digit)
        for scheme in ("light", "dark"):
            screenshot(b, scheme, folder / f"digits-{scheme}.png")
    finally:
        b.close()
    if wrong:
        print("wrong answers for", *wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
