"""open_with_token.py URL TOKEN FOLDER: opens the live page of an endpoint with a token as a person does."""
import base64
import os
import sys
import urllib.parse

from browser import browser

url, token, folder = sys.argv[1:]
live = "document.body && document.body.dataset.link === 'live' && document.querySelectorAll('#devices section').length > 0"
asks = "document.body && document.body.dataset.link === 'token' && !document.getElementById('login').hidden"
encoded = urllib.parse.quote(token, safe="+")


def check(fact, what):
    if not fact:
        raise RuntimeError(what)


def enter(tab, text):
    tab.value("document.getElementById('token').focus()")
    tab.type(text)


def picture(tab, name):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(base64.b64decode(tab.call("Page.captureScreenshot")["data"]))


def with_form(tab):
    tab.go(url)
    tab.wait(asks, "the page asks for the token")
    picture(tab, "token-form.png")
    for wrong in ("wrong", token[:-1], token + "x", "not ASCII: \u00fc"):
        tab.value("document.getElementById('banner').hidden = true")
        enter(tab, wrong)
        tab.wait("!document.getElementById('banner').hidden", f"the page refuses {wrong!r}")
        check(tab.value(asks), f"the page asks again after {wrong!r}")
    picture(tab, "token-wrong.png")
    # As it is copied from a terminal.
    enter(tab, " " + token + " ")
    tab.wait(live, "the page is live after the right token")
    tab.call("Page.reload")
    tab.wait(live, "the page is live after it was loaded again")


def with_address(tab):
    tab.go(url + "#token=wrong")
    tab.wait(asks, "the page asks for the token instead of a wrong one in the address")
    # Into the same tab: the page is not loaded again.
    tab.go(url + "#token=" + encoded)
    tab.wait(live, "the page takes the token of the address that was entered")
    tab.value("sessionStorage.clear()")
    tab.go("about:blank")
    tab.go(url + "#token=" + encoded)
    tab.wait(live, "the page is live with the token in the address")
    shown = tab.value("location.href")
    check(shown == url, f"the address bar shows {shown}")
    entries = [e["url"] for e in tab.call("Page.getNavigationHistory")["entries"]]
    check(not any("token=" in e and "wrong" not in e for e in entries), f"the token is in the history: {entries}")


def no_trace(tab, test):
    """The token went to the server in the field Authorization only."""
    sent = 0
    for e in tab.events:
        headers = e["params"]["headers"] if e.get("method") == "Network.requestWillBeSentExtraInfo" else {}
        sent += headers.get("Authorization") == "Bearer " + token
        for name, value in headers.items():
            check(name == "Authorization" or (token not in value and encoded not in value),
                  f"{test}: the token is in the field {name}")
            check(name.lower() != "referer", f"{test}: a request has the field Referer: {value}")
        if e.get("method") == "Network.requestWillBeSent":
            address = e["params"]["request"]["url"]
            check(token not in address and encoded not in address, f"{test}: the token is in the address {address}")
    check(sent > 0, f"{test}: no request had the token")


for test in (with_form, with_address):
    tab = browser(os.path.join(folder, "chromium-" + test.__name__), os.path.join(folder, test.__name__ + ".log"))
    try:
        test(tab)
        no_trace(tab, test.__name__)
    finally:
        tab.close()
    print("ok", test.__name__)
